package diskbackend

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"

	"go.etcd.io/bbolt"

	"ration/internal/recordtext"
	"ration/lease"
)

// check reads the whole file, which it does not change. It gives errNothing where
// nothing was ever written.
func check(path string) (err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return failed("opening", path, err)
	case !info.Mode().IsRegular():
		return damaged(path, "it is no file")
	case info.Size() == 0:
		return damaged(path, "%w", errNothing)
	}
	db, err := open(path, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(whole)
	if err == nil || errors.Is(err, lease.ErrFormat) {
		return err
	}
	return damaged(path, "%w", err)
}

var errNothing = errors.New("there is nothing in it")

// whole reads everything, and says what is wrong first.
func whole(tx *bbolt.Tx) error {
	if err := checkPages(tx); err != nil {
		return err
	}
	if name, _ := tx.Cursor().First(); name == nil {
		return errNothing
	}
	if tx.Bucket(about) == nil {
		return errors.New("it is a store, and not of a coordinator")
	}
	if err := formatOf(tx); err != nil {
		return err
	}
	if tx.Bucket(prefixes) == nil || tx.Bucket(fields) == nil {
		return errors.New("a part of it is missing")
	}
	if _, err := getSeat(tx); err != nil {
		return err
	}
	if _, err := getPolicy(tx); err != nil {
		return err
	}
	c := tx.Bucket(fields).Cursor()
	name, value := c.First()
	err := tx.Bucket(prefixes).ForEach(func(id, text []byte) error {
		if _, err := strconv.ParseInt(string(text), 10, 64); err != nil {
			return fmt.Errorf("prefix %q is kept to %.40q: %w", id, text, err)
		}
		if len(id) < 2 || int(binary.BigEndian.Uint16(id)) != len(id)-2 {
			return fmt.Errorf("%.200q is no prefix", id)
		}
		var texts []string
		for ; bytes.HasPrefix(name, id); name, value = c.Next() {
			texts = append(texts, string(name[len(id):]), string(value))
		}
		_, err := recordtext.Read(lease.Key(id[2:]), texts)
		return err
	})
	if err == nil && name != nil {
		return fmt.Errorf("field %.200q is of no prefix, or not in its place", name)
	}
	return err
}

// formatOf says whether the layout is one that this version reads.
func formatOf(tx *bbolt.Tx) error {
	text := tx.Bucket(about).Get(formatName)
	n, err := strconv.Atoi(string(text))
	switch {
	case err != nil || n < 1:
		return fmt.Errorf("its format number is %.40q", text)
	case n > format:
		return fmt.Errorf("diskbackend: %s is of format %d, and this version reads up to %d: start the newer version that wrote it, or give another directory: %w",
			tx.DB().Path(), n, format, lease.ErrFormat)
	}
	return nil
}
