package bus

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"ration/lease"
)

// The readers below walk bytes that valid has accepted: they trust the
// grammar and judge only what the values mean.

// problem is what is wrong with a field. Callers put its place in front as it
// rises through them, so that reading a sound message builds no paths.
type problem struct {
	sentinel *lease.Error
	field    string
	text     string
}

func (p *problem) Error() string {
	return fmt.Sprintf("%v: field %s: %s", p.sentinel, p.field, p.text)
}

func (p *problem) Unwrap() error { return p.sentinel }

func fieldError(name, format string, args ...any) *problem {
	return &problem{lease.ErrBadRequest, name, fmt.Sprintf(format, args...)}
}

// within puts the name of the enclosing field in front of err's.
func within(name string, err error) error {
	if p, ok := err.(*problem); ok {
		switch {
		case p.field == "":
			p.field = name
		case p.field[0] == '[':
			p.field = name + p.field
		default:
			p.field = name + "." + p.field
		}
	}
	return err
}

// document checks that body is one JSON object in UTF-8.
func document(body []byte) error {
	switch {
	case !utf8.Valid(body):
		return fmt.Errorf("%w: it is not UTF-8; send a key that is not as key64", lease.ErrBadRequest)
	case !valid(body):
		return fmt.Errorf("%w: it is not JSON", lease.ErrBadRequest)
	}
	if i := space(body, 0); body[i] != '{' {
		return fmt.Errorf("%w: it is not a JSON object", lease.ErrBadRequest)
	}
	return nil
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// value gives the end of the value that begins at b[i].
func value(b []byte, i int) int {
	switch b[i] {
	case '"':
		for i++; b[i] != '"'; i++ {
			if b[i] == '\\' {
				i++
			}
		}
		return i + 1
	case '{', '[':
		for depth := 0; ; {
			switch b[i] {
			case '"':
				i = value(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			if i++; depth == 0 {
				return i
			}
		}
	}
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != ']' && b[i] != '}' {
		i++
	}
	return i
}

// object calls field for each member of the object raw. Members that field
// does not know are ignored, since a newer sender may add some; those it knows
// may stand once and not be null; the required ones must be there.
func object(raw []byte, field func(name string, raw []byte) (known bool, err error), required ...string) error {
	var seen fields
	if err := members(raw, &seen, field); err != nil {
		return err
	}
	return seen.check(required)
}

// fields are the names of the members of an object that its reader knows.
type fields struct {
	n  int
	at [24]string // more than any object has
}

func (f *fields) has(name string) bool { return contains(f.at[:f.n], name) }

func (f *fields) check(required []string) error {
	for _, name := range required {
		if !f.has(name) {
			return fieldError(name, "it is missing")
		}
	}
	return nil
}

// members is object without the required ones: it notes which members there are.
func members(raw []byte, seen *fields, field func(name string, raw []byte) (known bool, err error)) error {
	if raw = raw[space(raw, 0):]; raw[0] != '{' {
		return fieldError("", "%s is not an object", excerpt(raw))
	}
	for i := space(raw, 1); raw[i] != '}'; {
		end := value(raw, i)
		name, err := fieldName(raw[i:end])
		if err != nil {
			return err
		}
		i = space(raw, space(raw, end)+1)
		end = value(raw, i)
		known, err := field(name, raw[i:end])
		switch {
		case known && seen.has(name):
			return fieldError(name, "it is given twice")
		case known && raw[i] == 'n':
			return fieldError(name, "null is no value; leave the field out")
		case err != nil:
			return within(name, err)
		case known:
			seen.at[seen.n] = name
			seen.n++
		}
		if i = space(raw, end); raw[i] == ',' {
			i = space(raw, i+1)
		}
	}
	return nil
}

// names are those of the fields of the messages that are read most, so that they
// need no room for each message.
var names = func() map[string]string {
	known := map[string]string{}
	for _, name := range []string{
		"v", "sent", "id", "keys", "key", "key64", "want", "need", "patience", "tokens", "slots", "requests",
		"outcome", "granted", "token_ttl", "slot_ttl", "terms", "window", "concurrent", "unlimited", "epoch", "answers", "waited",
		"holder", "heartbeat", "counts", "given_up", "points", "count", "age", "returned", "freed", "cut",
	} {
		known[name] = name
	}
	return known
}()

func fieldName(raw []byte) (string, error) {
	if name, ok := names[string(raw[1:len(raw)-1])]; ok {
		return name, nil
	}
	return unquote(raw)
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// list calls item for each element of the list raw, of which there may be most.
func list(raw []byte, most int, item func(raw []byte) error) error {
	if raw[0] != '[' {
		return fieldError("", "%s is not a list", excerpt(raw))
	}
	n := 0
	for i := space(raw, 1); raw[i] != ']'; n++ {
		if n == most {
			return fieldError("", "it has more than %d entries, the most a message may have", most)
		}
		end := value(raw, i)
		if err := item(raw[i:end]); err != nil {
			return within("["+strconv.Itoa(n)+"]", err)
		}
		if i = space(raw, end); raw[i] == ',' {
			i = space(raw, i+1)
		}
	}
	return nil
}

func excerpt(raw []byte) string {
	if len(raw) > 40 {
		return strings.ToValidUTF8(string(raw[:40]), "") + "…"
	}
	return string(raw)
}

// unquoted is unquote into bytes, which are those of raw if nothing in it is escaped.
func unquoted(raw []byte) ([]byte, error) {
	if raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	s, err := unquote(raw)
	return []byte(s), err
}

// unquote reads a string. A lone surrogate is refused: other readers turn all
// of them into one character, which would fold two keys together.
func unquote(raw []byte) (string, error) {
	if raw[0] != '"' {
		return "", fieldError("", "%s is not a string", excerpt(raw))
	}
	raw = raw[1 : len(raw)-1]
	for i := 0; ; i++ {
		if i == len(raw) {
			return string(raw), nil
		}
		if raw[i] == '\\' {
			break
		}
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, last := escaped(raw, i)
			if r < 0 {
				return "", fieldError("", "%s has half of a surrogate pair", excerpt(raw))
			}
			out, i = utf8.AppendRune(out, r), last
		default:
			out = append(out, raw[i])
		}
	}
	return string(out), nil
}

// escaped reads the \uXXXX, or pair of them, whose 'u' is at raw[i]. It gives
// the place of the last digit, and -1 for half a pair.
func escaped(raw []byte, i int) (r rune, last int) {
	hex := func(i int) rune {
		n, err := strconv.ParseUint(string(raw[i+1:i+5]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	r = hex(i)
	switch {
	case r < 0xd800 || r > 0xdfff:
		return r, i + 4
	case r > 0xdbff || i+10 >= len(raw) || raw[i+5] != '\\' || raw[i+6] != 'u':
		return -1, i
	}
	low := hex(i + 6)
	if low < 0xdc00 || low > 0xdfff {
		return -1, i
	}
	return (r-0xd800)<<10 + (low - 0xdc00) + 0x10000, i + 10
}
