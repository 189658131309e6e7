package diskbackend

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

// pages reads the pages of a file as they are on disk, and trusts none: the store takes
// what is on them for granted, and ends the process where it is wrong. It holds to
//
//	page    <id 8> <kind 2> <elements 2> <further pages 4> element ...
//	branch  <offset 4> <key's length 4> <page 8>
//	leaf    <kind 4> <offset 4> <key's length 4> <value's length 4>
//
// in the byte order of the machine, with offsets from where their elements begin.
type pages struct {
	file *os.File
	size uint64 // of a page
	end  uint64 // the first page that is none
	seen map[uint64]bool
}

const (
	branchPage = 1
	leafPage   = 2
	headLen    = 16
	elementLen = 16
	bucketHead = 16 // <page 8, or 0 if it follows> <unused 8>
)

var order = binary.NativeEndian

// checkPages follows the tree of the last transaction.
func checkPages(tx *bbolt.Tx) (err error) {
	f, err := os.Open(tx.DB().Path())
	if err != nil {
		return err
	}
	defer f.Close()
	size := uint64(tx.DB().Info().PageSize)
	p := pages{file: f, size: size, end: uint64(tx.Size()) / size, seen: map[uint64]bool{}}
	return p.tree(uint64(tx.Cursor().Bucket().RootPage()), nil, nil)
}

// tree checks the page and what is below it. Its names are at or above from and, if to
// is not nil, below that.
func (p *pages) tree(id uint64, from, to []byte) error {
	page, err := p.read(id)
	if err != nil {
		return fmt.Errorf("page %d %w", id, err)
	}
	if err := p.elements(page, from, to); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// read gives a page with those that follow it.
func (p *pages) read(id uint64) ([]byte, error) {
	head := make([]byte, headLen)
	if id < 2 || id >= p.end {
		return nil, fmt.Errorf("is none of %d", p.end)
	}
	if _, err := p.file.ReadAt(head, int64(id*p.size)); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	further := uint64(order.Uint32(head[12:]))
	if order.Uint64(head) != id || id+further >= p.end {
		return nil, fmt.Errorf("is not what is in its place")
	}
	for i := id; i <= id+further; i++ {
		if p.seen[i] {
			return nil, fmt.Errorf("is in two places")
		}
		p.seen[i] = true
	}
	if info, err := p.file.Stat(); err != nil || uint64(info.Size()) < (id+further+1)*p.size {
		return nil, fmt.Errorf("is not all in the file")
	}
	page := make([]byte, (further+1)*p.size)
	if _, err := p.file.ReadAt(page, int64(id*p.size)); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return page, nil
}

// elements checks what is on a page.
func (p *pages) elements(page, from, to []byte) error {
	if len(page) < headLen {
		return fmt.Errorf("it has no head")
	}
	kind, n := order.Uint16(page[8:]), int(order.Uint16(page[10:]))
	if kind != leafPage && (kind != branchPage || n == 0) || headLen+n*elementLen > len(page) {
		return fmt.Errorf("it is of kind %d with %d elements", kind, n)
	}
	var names [][]byte
	for i := range n {
		name, _, err := element(page, kind, i)
		if err != nil {
			return err
		}
		if bytes.Compare(name, from) < 0 || i > 0 && bytes.Equal(name, from) || to != nil && bytes.Compare(name, to) >= 0 {
			return fmt.Errorf("%.80q is out of order", name)
		}
		names, from = append(names, name), name
	}
	for i := range n {
		name, value, _ := element(page, kind, i)
		next := to
		if i+1 < n {
			next = names[i+1]
		}
		at := page[headLen+i*elementLen:]
		var err error
		switch {
		case kind == branchPage:
			err = p.tree(order.Uint64(at[8:]), name, next)
		case order.Uint32(at)&1 == 0:
		case len(value) < bucketHead:
			err = fmt.Errorf("%.80q is no bucket", name)
		case order.Uint64(value) == 0:
			err = p.elements(value[bucketHead:], nil, nil)
		default:
			err = p.tree(order.Uint64(value), nil, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// element gives the name and, in a leaf, the value of an element.
func element(page []byte, kind uint16, i int) (name, value []byte, err error) {
	at := page[headLen+i*elementLen:]
	begin, named, valued := order.Uint32(at), order.Uint32(at[4:]), uint32(0)
	if kind == leafPage {
		begin, named, valued = order.Uint32(at[4:]), order.Uint32(at[8:]), order.Uint32(at[12:])
	}
	middle := uint64(begin) + uint64(named)
	if end := middle + uint64(valued); begin < elementLen || end > uint64(len(at)) {
		return nil, nil, fmt.Errorf("element %d is not on it", i)
	}
	return at[begin:middle], at[middle : middle+uint64(valued)], nil
}
