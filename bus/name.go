package bus

import (
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"

	"ration/lease"
)

// maxNameLen is the longest name of a holder, in bytes.
const maxNameLen = 128

// checkName says what is wrong with the name of a holder.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the holder has no name; give 1 to %d bytes of UTF-8", maxNameLen)
	case len(name) > maxNameLen:
		return fmt.Errorf("the holder's name has %d bytes; at most %d are allowed", len(name), maxNameLen)
	case !utf8.ValidString(name):
		return fmt.Errorf("the holder's name %q is not UTF-8; give 1 to %d bytes of UTF-8", name, maxNameLen)
	}
	return nil
}

// A holder is written <name>.<incarnation>, an id <holder>/<sequence>: just as
// the logs have them. Names may hold dots and slashes, so both are read from
// the right. Each has one spelling, so that holders may compare texts.

func readHolder(raw []byte, to *lease.Holder) error {
	s, err := unquote(raw)
	if err != nil {
		return err
	}
	if !parseHolder(s, to) {
		return fieldError("", "%.80q is not a holder such as \"shell-1.7f3a\": name, dot, incarnation in lower-case hexadecimal", s)
	}
	return asField(checkName(to.Name))
}

func readID(raw []byte, to *lease.ID) error {
	s, err := unquote(raw)
	if err != nil {
		return err
	}
	i := strings.LastIndexByte(s, '/')
	if i < 0 || !parseHolder(s[:i], &to.Holder) || !canonical(s[i+1:], 10, &to.Seq) {
		return fieldError("", "%.80q is not an id such as \"shell-1.7f3a/12\": holder, slash, sequence in decimal", s)
	}
	return asField(checkName(to.Holder.Name))
}

func readIDs(raw []byte, to *[]lease.ID) error {
	return list(raw, MaxCounts, func(raw []byte) error {
		var id lease.ID
		err := readID(raw, &id)
		*to = append(*to, id)
		return err
	})
}

func readEpoch(raw []byte, to *lease.Epoch) error {
	s, err := unquote(raw)
	if err != nil {
		return err
	}
	number, mark, ok := strings.Cut(s, ".")
	if !ok || !canonical(number, 10, &to.Number) || !canonical(mark, 16, &to.Mark) {
		return fieldError("", "%.80q is not an epoch such as \"3.9f21\": number, dot, mark in lower-case hexadecimal", s)
	}
	return nil
}

func parseHolder(s string, to *lease.Holder) bool {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return false
	}
	to.Name = s[:i]
	return canonical(s[i+1:], 16, &to.Incarnation)
}

// canonical reads the one spelling of a number: lower case, no leading zeros.
func canonical[T string | []byte](s T, base uint64, to *uint64) bool {
	if len(s) == 0 || s[0] == '0' && len(s) > 1 {
		return false
	}
	n := uint64(0)
	for i := range len(s) {
		d := uint64(s[i] - '0')
		if d > 9 {
			d = uint64(s[i]-'a') + 10
			if s[i] < 'a' || d >= base {
				return false
			}
		}
		hi, lo := bits.Mul64(n, base)
		sum, carry := bits.Add64(lo, d, 0)
		if hi+carry != 0 {
			return false
		}
		n = sum
	}
	*to = n
	return true
}

func asField(err error) error {
	if err == nil {
		return nil
	}
	return fieldError("", "%v", err)
}
