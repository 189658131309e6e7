package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"unicode/utf8"
)

// entry is one line of a log: a call that was sent.
type entry struct {
	Item   *string `json:"item,omitempty"`
	Item64 []byte  `json:"item64,omitempty"` // instead of Item where that is not UTF-8
	Key    string  `json:"key,omitempty"`
	Key64  []byte  `json:"key64,omitempty"` // instead of Key where that is not UTF-8
	// More are the others of several keys.
	More []named `json:"more,omitempty"`
	Cost int64   `json:"cost"`
	// Units are what else the call cost.
	Units map[string]int64 `json:"units,omitempty"`
	Exit  *int             `json:"exit,omitempty"`
	// Sent is when the spend is dated and Done when the call had ended, in
	// nanoseconds since 1970.
	Sent int64 `json:"sent"`
	Done int64 `json:"done"`

	keys []string // that Key and More say
}

// named is a key in a list: its text, or an object with key64 where that is not UTF-8.
type named string

func (k named) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(k)) {
		return json.Marshal(string(k))
	}
	return json.Marshal(map[string][]byte{"key64": []byte(k)})
}

// journal is the log of a run. The nil journal writes nothing. It is safe for
// concurrent use, also by several processes on one file.
type journal struct {
	file *os.File
}

// openJournal opens a log to append to; the empty path gives the nil journal.
func openJournal(path string) (*journal, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644)
	if errors.Is(err, os.ErrPermission) { // it may be there to be written only
		f, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	}
	if err == nil && torn(f) {
		_, err = f.WriteString("\n")
	}
	if err != nil {
		return nil, fmt.Errorf("log: %w; name a file that can be written with --log", err)
	}
	return &journal{f}, nil
}

// torn says that the last line of a log is not whole, as a full disk or a killed
// process leaves it: what comes next goes on a line of its own.
func torn(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}

// write appends one line in one write, so that lines of several processes do
// not mix.
func (j *journal) write(e entry) error {
	if j == nil {
		return nil
	}
	if e.Key = e.keys[0]; !utf8.ValidString(e.Key) {
		e.Key64, e.Key = []byte(e.Key), ""
	}
	for _, key := range e.keys[1:] {
		e.More = append(e.More, named(key))
	}
	if e.Item != nil && !utf8.ValidString(*e.Item) {
		e.Item64, e.Item = []byte(*e.Item), nil
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}
