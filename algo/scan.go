package algo

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// scanner reads the text of a rule piece by piece. Columns are places in runes,
// from 1.
type scanner struct {
	text  string
	runes []rune
	pos   int
}

// column is where the next piece starts.
func (s *scanner) column() int {
	s.peek()
	return s.pos + 1
}

// fail gives the error at that column.
func (s *scanner) fail(column int, remedy, problem string, args ...any) error {
	return &RuleError{Text: s.text, Column: column, Problem: fmt.Sprintf(problem, args...), Remedy: remedy}
}

// peek skips blanks and gives the next rune, or 0 at the end.
func (s *scanner) peek() rune {
	for s.pos < len(s.runes) && unicode.IsSpace(s.runes[s.pos]) {
		s.pos++
	}
	return s.at(s.pos)
}

func (s *scanner) at(pos int) rune {
	if pos < len(s.runes) {
		return s.runes[pos]
	}
	return 0
}

func (s *scanner) end() bool {
	s.peek()
	return s.pos >= len(s.runes)
}

// accept reads r if it is next.
func (s *scanner) accept(r rune) bool {
	if s.peek() != r || s.end() {
		return false
	}
	s.pos++
	return true
}

// word reads letters. It gives "" if none is next.
func (s *scanner) word() string {
	s.peek()
	from := s.pos
	for unicode.IsLetter(s.at(s.pos)) {
		s.pos++
	}
	return string(s.runes[from:s.pos])
}

// field reads up to the next blank.
func (s *scanner) field() string {
	s.peek()
	from := s.pos
	for s.pos < len(s.runes) && !unicode.IsSpace(s.runes[s.pos]) {
		s.pos++
	}
	return string(s.runes[from:s.pos])
}

// found names what is next, for an error.
func (s *scanner) found() string {
	if s.end() {
		return "the end"
	}
	ahead := *s
	if word := ahead.word(); word != "" {
		return quote(word)
	}
	return quote(ahead.field())
}

// quote shows a piece of the text, or the beginning of a long one.
func quote(piece string) string { return fmt.Sprintf("%.40q", piece) }

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// number reads a whole number from 0 to most. One underscore may stand
// between two digits.
func (s *scanner) number(what string, most int64) (int64, error) {
	switch r := s.peek(); {
	case r == '-':
		return 0, s.fail(s.column(), "write 0 or more", "%s is negative", what)
	case r == '.' || r == '+':
		return 0, s.fail(s.column(), "write digits only", "%s begins with %q", what, r)
	case !isDigit(r):
		return 0, s.fail(s.column(), "write a whole number", "%s is missing where %s is", what, s.found())
	}
	column := s.column()
	var digits strings.Builder
	for ; isDigit(s.at(s.pos)); s.pos++ {
		digits.WriteRune(s.runes[s.pos])
		if s.at(s.pos+1) == '_' && isDigit(s.at(s.pos+2)) {
			s.pos++
		}
	}
	if err := s.whole(column, what); err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(digits.String(), 10, 64)
	if err != nil || n > most {
		return 0, s.fail(column, fmt.Sprintf("write at most %d", most), "%s is too large", what)
	}
	return n, nil
}

// whole tells of the ways people write numbers that rules do not read.
func (s *scanner) whole(column int, what string) error {
	next, afterwards := s.at(s.pos), s.at(s.pos+1)
	switch {
	case next == '.':
		return s.fail(column, "write a whole number over a longer period, as 1/5s for 0.2/1s, or of a smaller unit, as 1500ms for 1.5s", "%s is a fraction", what)
	case (next == 'e' || next == 'E') && (isDigit(afterwards) || afterwards == '+' || afterwards == '-'):
		return s.fail(column, "write all its digits", "%s has an exponent", what)
	case next == ',':
		return s.fail(s.pos+1, "leave it out, or write _ between digits", "%s has a comma", what)
	case next == '_':
		return s.fail(s.pos+1, "put one _ between two digits, or leave it out", "%s has a stray _", what)
	}
	return nil
}
