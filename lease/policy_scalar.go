package lease

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

const escapeRemedy = `write two hexadecimal digits after \x, four after \u, eight after \U`

// scalar is a text of the file, in quotes or not, on one line.
type scalar struct {
	value string
	at    place
	// columns has, for each character of value, the column it is written in.
	columns []int
}

// place gives where the character of the value at index i is written.
func (t scalar) place(i int) place {
	switch {
	case i < len(t.columns):
		return place{t.at.line, t.columns[i]}
	case len(t.columns) > 0:
		return place{t.at.line, t.columns[len(t.columns)-1] + 1}
	}
	return t.at
}

// scalar reads n as a text and says where each character of it is written, as
// quotes and escapes stand between a text and its place. It gives false after
// a complaint.
func (s *source) scalar(n ast.Node) (scalar, bool) {
	t := n.GetToken()
	text := scalar{value: t.Value, at: tokenPlace(t)}
	line, i := s.line(text.at.line), text.at.column-1
	quote := rune(0)
	switch t.Type {
	case token.SingleQuoteType:
		quote = '\''
		i++
	case token.DoubleQuoteType:
		quote = '"'
		i++
	}
	text.columns = make([]int, 0, len(text.value))
	for _, c := range text.value {
		if i >= len(line) {
			return s.broken(text)
		}
		n := 1
		if escaped(line[i:], quote) {
			n = escapeLen(line[i:])
		} else if line[i] != c {
			return s.broken(text)
		}
		if n == 0 {
			s.add(place{text.at.line, i + 1}, "the escape stands for no character", escapeRemedy)
			return scalar{}, false
		}
		text.columns = append(text.columns, i+1)
		i += n
	}
	if quote != 0 && (i >= len(line) || line[i] != quote) {
		return s.broken(text)
	}
	return text, true
}

// line gives line n of the file, counted from 1.
func (s *source) line(n int) []rune {
	if n > len(s.lines) {
		return nil
	}
	return s.lines[n-1]
}

// broken complains of a text that is not the same as what its line has.
func (s *source) broken(text scalar) (scalar, bool) {
	s.add(text.at, "a text goes on over the end of its line", "write it on one line")
	return scalar{}, false
}

// escaped says that more than one character is written for the next of the
// value.
func escaped(written []rune, quote rune) bool {
	return quote == '"' && written[0] == '\\' || quote == '\'' && written[0] == '\''
}

// escapeLen gives how many characters an escape is written in, or 0 for one
// that stands for none. The lexer takes any digits, and half a surrogate pair.
func escapeLen(written []rune) int {
	if len(written) < 2 {
		return 0
	}
	digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[written[1]]
	if digits == 0 {
		return 2
	}
	c, ok := hexadecimal(written[2:], digits)
	switch {
	case !ok:
		return 0
	case utf8.ValidRune(c):
		return 2 + digits
	case digits != 4 || len(written) < 12 || !strings.HasPrefix(string(written[6:8]), `\u`):
		return 0
	}
	if low, ok := hexadecimal(written[8:], 4); !ok || c >= 0xdc00 || low < 0xdc00 || low > 0xdfff {
		return 0
	}
	return 12 // both halves of a pair
}

// hexadecimal reads the number that s begins with.
func hexadecimal(s []rune, digits int) (rune, bool) {
	if len(s) < digits {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s[:digits]), 16, 31)
	return rune(n), err == nil
}
