package oracle

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// ErrTorn says that a log's last line is not whole, as a killed process leaves
// it. What it spent last is then not in the log.
var ErrTorn = errors.New("oracle: the last line is torn")

// line is one line of a log. Whatever else stands in it is passed over.
type line struct {
	Key   *string          `json:"key"`
	Key64 []byte           `json:"key64"`
	More  []named          `json:"more"`
	Sent  *instant         `json:"sent"`
	Cost  *int64           `json:"cost"`
	Units map[string]int64 `json:"units"`
	Done  instant          `json:"done"`
}

// named is a key in a list: its text, or in "key64" of an object.
type named string

func (k *named) UnmarshalJSON(text []byte) error {
	var bytes struct {
		Key64 []byte `json:"key64"`
	}
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, (*string)(k))
	}
	err := json.Unmarshal(text, &bytes)
	*k = named(bytes.Key64)
	return err
}

// instant is Unix nanoseconds, as a number or, since it passes 2^53, a string.
type instant int64

func (i *instant) UnmarshalJSON(text []byte) error {
	if len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	*i = instant(n)
	return err
}

// Read reads a log of JSON Lines, {"key":"demo","sent":1700000000000000000}.
// "cost" is 1, "units" none, and "done", the end of the call, unknown where they are left out;
// a key that is not UTF-8 stands in "key64" as base64, and the others of several keys
// in "more", in the same way.
// Where the last line is torn it gives all the others and ErrTorn; any other bad
// line is an error that names it.
func Read(r io.Reader) ([]Spend, error) {
	var spends []Spend
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if err == io.EOF && len(text) == 0 {
			return spends, nil
		}
		if err != nil && err != io.EOF {
			return spends, fmt.Errorf("oracle: reading line %d: %w", n, err)
		}
		s, bad := parseLine(text)
		if bad != nil && err == io.EOF {
			return spends, ErrTorn
		}
		if bad != nil {
			return spends, fmt.Errorf("oracle: line %d: %w", n, bad)
		}
		spends = append(spends, s)
	}
}

func parseLine(text []byte) (Spend, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return Spend{}, err
	}
	if l.Key == nil && l.Key64 != nil {
		key := string(l.Key64)
		l.Key = &key
	}
	if l.Key == nil || l.Sent == nil {
		return Spend{}, errors.New(`it lacks "key" or "sent"`)
	}
	s := Spend{Key: *l.Key, At: int64(*l.Sent), Cost: 1, Units: l.Units, Done: int64(l.Done)}
	for _, k := range l.More {
		s.More = append(s.More, string(k))
	}
	if l.Cost != nil {
		s.Cost = *l.Cost
	}
	return s, nil
}

// ReadFiles reads logs and merges them into one list, in order of time. Errors
// name their file; those of several are joined, and the spends of all are given
// nevertheless.
func ReadFiles(paths ...string) ([]Spend, error) {
	var spends []Spend
	var failed []error
	for _, path := range paths {
		more, err := readFile(path)
		spends = append(spends, more...)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", path, err))
		}
	}
	Sort(spends)
	return spends, errors.Join(failed...)
}

func readFile(path string) ([]Spend, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f)
}
