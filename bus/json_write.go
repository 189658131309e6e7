package bus

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ration/lease"
)

// maxNumber is the largest integer that every JSON reader keeps exact. What
// can be larger travels as a string.
const maxNumber = 1<<53 - 1

// writer appends JSON. It keeps the first error and then does nothing more, so
// that the forms of messages read as the list of their fields.
type writer struct {
	b   []byte
	err error
}

func (w *writer) done() ([]byte, error) { return w.b, w.err }

func (w *writer) fail(name, format string, args ...any) {
	if w.err == nil {
		w.err = fieldError(name, format, args...)
	}
}

// next puts the comma, if this is not the first of its object or list.
func (w *writer) next() {
	if n := len(w.b); n > 0 && w.b[n-1] != '{' && w.b[n-1] != '[' {
		w.b = append(w.b, ',')
	}
}

// name starts a field; in a list its name is "".
func (w *writer) name(name string) {
	w.next()
	if name != "" {
		w.b = append(w.b, '"')
		w.b = append(w.b, name...)
		w.b = append(w.b, '"', ':')
	}
}

func (w *writer) object(name string, fields func()) {
	w.name(name)
	w.b = append(w.b, '{')
	fields()
	w.b = append(w.b, '}')
}

func (w *writer) list(name string, n int, item func(i int)) {
	w.name(name)
	w.b = append(w.b, '[')
	for i := range n {
		item(i)
	}
	w.b = append(w.b, ']')
}

func (w *writer) version() {
	w.name("v")
	w.b = strconv.AppendInt(w.b, Format, 10)
}

func (w *writer) number(name string, n int64) {
	if n < 0 || n > maxNumber {
		w.fail(name, "%d is not between 0 and 2^53-1", n)
		return
	}
	w.name(name)
	w.b = strconv.AppendInt(w.b, n, 10)
}

func (w *writer) flag(name string, set bool) {
	if set {
		w.name(name)
		w.b = append(w.b, "true"...)
	}
}

// duration writes a whole number of the largest unit that is exact.
func (w *writer) duration(name string, d time.Duration) {
	if d < 0 {
		w.fail(name, "%v is negative", d)
		return
	}
	n, unit := int64(d), "ns"
	switch {
	case n%1e9 == 0:
		n, unit = n/1e9, "s"
	case n%1e6 == 0:
		n, unit = n/1e6, "ms"
	case n%1e3 == 0:
		n, unit = n/1e3, "us"
	}
	w.name(name)
	w.b = append(w.b, '"')
	w.b = strconv.AppendInt(w.b, n, 10)
	w.b = append(w.b, unit...)
	w.b = append(w.b, '"')
}

const hexDigits = "0123456789abcdef"

// text writes a string for people; what is not UTF-8 in it is replaced.
func (w *writer) text(name, s string) {
	w.name(name)
	w.b = append(w.b, '"')
	w.escaped(s)
	w.b = append(w.b, '"')
}

func (w *writer) escaped(s string) {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "�")
	}
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c != 0x7f {
			continue
		}
		w.b = append(w.b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			w.b = append(w.b, '\\', c)
		case '\n':
			w.b = append(w.b, '\\', 'n')
		case '\r':
			w.b = append(w.b, '\\', 'r')
		case '\t':
			w.b = append(w.b, '\\', 't')
		default:
			w.b = append(w.b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	w.b = append(w.b, s[start:]...)
}

// key writes a key as a field "key" or, when JSON cannot carry its bytes,
// "key64".
func (w *writer) key(k lease.Key) {
	if utf8.ValidString(string(k)) {
		w.text("key", string(k))
		return
	}
	w.text("key64", base64.StdEncoding.EncodeToString([]byte(k)))
}

func (w *writer) keys(keys []lease.Key) {
	if err := checkKeys(len(keys)); err != nil {
		w.fail("keys", "%v", err)
		return
	}
	w.keyList("keys", keys)
}

func (w *writer) keyList(name string, keys []lease.Key) {
	w.list(name, len(keys), func(i int) {
		if utf8.ValidString(string(keys[i])) {
			w.text("", string(keys[i]))
			return
		}
		w.object("", func() { w.key(keys[i]) })
	})
}

func checkKeys(n int) error {
	if n < 1 || n > MaxKeys {
		return fmt.Errorf("%d keys; name 1 to %d", n, MaxKeys)
	}
	return nil
}

func (w *writer) holder(name string, h lease.Holder) {
	w.named(name, h)
	w.b = append(w.b, '"')
}

func (w *writer) id(name string, id lease.ID) {
	w.named(name, id.Holder)
	w.b = append(w.b, '/')
	w.b = strconv.AppendUint(w.b, id.Seq, 10)
	w.b = append(w.b, '"')
}

// named opens a string that begins with a holder.
func (w *writer) named(name string, h lease.Holder) {
	if err := checkName(h.Name); err != nil {
		w.fail(name, "%v", err)
	}
	w.name(name)
	w.b = append(w.b, '"')
	w.escaped(h.Name)
	w.b = append(w.b, '.')
	w.b = strconv.AppendUint(w.b, h.Incarnation, 16)
}

func (w *writer) ids(name string, ids []lease.ID) {
	if len(ids) == 0 {
		return
	}
	w.list(name, len(ids), func(i int) { w.id("", ids[i]) })
}

// amount leaves out what is 0.
func (w *writer) amount(name string, a lease.Amount) {
	w.object(name, func() {
		if a.Tokens != 0 {
			w.number("tokens", a.Tokens)
		}
		if a.Slots != 0 {
			w.number("slots", a.Slots)
		}
		w.units("units", a.Units)
	})
}

func (w *writer) epoch(e lease.Epoch) {
	w.name("epoch")
	w.b = append(w.b, '"')
	w.b = strconv.AppendUint(w.b, e.Number, 10)
	w.b = append(w.b, '.')
	w.b = strconv.AppendUint(w.b, e.Mark, 16)
	w.b = append(w.b, '"')
}
