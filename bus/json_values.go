package bus

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"time"

	"ration/lease"
)

// Readers of one value each. What they refuse has no place yet; their caller
// puts it in front.

func readText(raw []byte, to *string) (err error) {
	*to, err = unquote(raw)
	return err
}

func readNumber(raw []byte, to *int64) error {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 0 || n > maxNumber {
		return fieldError("", "%s is not a whole number between 0 and 2^53-1", excerpt(raw))
	}
	*to = n
	return nil
}

func readFlag(raw []byte, to *bool) error {
	switch string(raw) {
	case "true":
		*to = true
	case "false":
		*to = false
	default:
		return fieldError("", "%s is neither true nor false", excerpt(raw))
	}
	return nil
}

var timeUnits = []struct {
	name string
	size time.Duration
}{ // "s" last: it ends the others too
	{"ns", 1}, {"us", time.Microsecond}, {"ms", time.Millisecond},
	{"h", time.Hour}, {"m", time.Minute}, {"s", time.Second},
}

// readDuration reads a whole number and one unit, such as "1500ms".
func readDuration(raw []byte, to *time.Duration) error {
	s, err := unquoted(raw)
	if err != nil {
		return fieldError("", `%s is not a duration such as "1500ms"`, excerpt(raw))
	}
	for _, u := range timeUnits {
		if !strings.HasSuffix(string(s), u.name) {
			continue
		}
		n, ok := decimal(s[:len(s)-len(u.name)])
		if !ok || n > uint64(math.MaxInt64/u.size) {
			break
		}
		*to = time.Duration(n) * u.size
		return nil
	}
	return fieldError("", `%.40q is not a duration: a whole number and one of ns, us, ms, s, m, h, such as "1500ms"`, s)
}

// decimal reads digits alone, as many as there are: no sign, no space, no underscore.
func decimal(s []byte) (n uint64, ok bool) {
	for i, c := range s {
		d := uint64(c - '0')
		if d > 9 || i > 0 && n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = 10*n + d
	}
	return n, len(s) > 0
}

func readKey(raw []byte, to *lease.Key) error {
	s, err := unquote(raw)
	if err != nil {
		return err
	}
	return parseKey(s, to)
}

func readKey64(raw []byte, to *lease.Key) error {
	s, err := unquote(raw)
	if err != nil {
		return err
	}
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil {
		return fieldError("", "it is not base64 with padding")
	}
	return parseKey(string(b), to)
}

func parseKey(s string, to *lease.Key) (err error) {
	if *to, err = lease.ParseKey(s); err != nil {
		text := strings.TrimPrefix(err.Error(), lease.ErrBadKey.Error()+": ")
		return &problem{lease.ErrBadKey, "", text}
	}
	return nil
}

func readKeys(raw []byte, to *[]lease.Key) error {
	err := list(raw, MaxKeys, func(raw []byte) error {
		var k lease.Key
		var err error
		if raw[0] == '{' {
			err = object(raw, func(name string, raw []byte) (bool, error) {
				if name != "key64" {
					return false, nil
				}
				return true, readKey64(raw, &k)
			}, "key64")
		} else {
			err = readKey(raw, &k)
		}
		*to = append(*to, k)
		return err
	})
	if err == nil && len(*to) == 0 {
		return fieldError("", "it is empty; name 1 to %d keys", MaxKeys)
	}
	return err
}

func readAmount(raw []byte, to *lease.Amount) error {
	return object(raw, func(name string, raw []byte) (bool, error) {
		switch name {
		case "tokens":
			return true, readNumber(raw, &to.Tokens)
		case "slots":
			return true, readNumber(raw, &to.Slots)
		case "units":
			return true, readUnits(raw, &to.Units)
		}
		return false, nil
	})
}
