package lease

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/token"
)

const (
	align                    = `align it: "- key:" under the one before, rules and guard under key`
	cutShort                 = ", or finish the file if it is cut short"
	notAField                = "the line is not a field"
	notAPart                 = "a part of the mapping is not a field"
	noBlocks, noBlocksRemedy = "blocks of text (| and >) have no place in a policy", "write the text on the line of its field"
	noList, noListRemedy     = "there is no [ to this ]", "remove it, or open the list"
)

// words has what the YAML parser says, by its beginning, in words of ours.
var words = [...]struct{ found, problem, remedy string }{
	{"could not find end character of", "a quote is opened and not closed", "close it" + cutShort},
	{"sequence end token ']' not found", "a list is opened and not closed", "close it with ]" + cutShort},
	{"could not find flow mapping end token '}'", "a mapping is opened and not closed", "close it with }" + cutShort},
	{"could not find '[' character", noList, noListRemedy},
	{"could not find '{' character", "there is no { to this }", "remove it, or open the mapping"},
	{"expected sequence element, but found ','", "an entry of the list is empty", "write one between two commas"},
	{"'@' is a reserved character", "no text begins with @", "put it in quotes"},
	{"'`' is a reserved character", "no text begins with `", "put it in quotes"},
	{"found unknown escape character", "the escape is none of YAML's", `write \\ for a backslash, or put the text in single quotes`},
	{"found unexpected low surrogate", "the escape stands for no character", escapeRemedy},
	{"block sequence entries are not allowed in this context", `a "-" stands behind something else`, "write each entry of a list on a line of its own"},
	{"found an invalid key for this map", notAField, `write it as "name: value"`},
	{"invalid header option", noBlocks, noBlocksRemedy},
	{"found unexpected document separator", "a quote is opened and not closed", "close it" + cutShort},
	{"found invalid tag character", "tags (!) have no place in a policy", "remove it, or put the value in quotes if it begins with !"},
	{"could not find map value", "a field has no value", "write it" + cutShort},
	{"map key definition includes an implicit line break", "the name of a field goes on over the end of its line", `write it as "name: value" on one line`},
	{"unexpected key name", notAField, `write it as "name: value"`},
	{"unexpected map key", notAField, `write it as "name: value"`},
	{"could not find flow map content", notAPart, `write each as "name: value", and divide them by commas`},
	{"unexpected scalar value type", "a value is missing before this", "write it, or remove the comma or colon"},
	{"value is not allowed in this context. map key-value is pre-defined", "more stands there than the value of the field", "write one field on each line, and look whether a quote ends too soon"},
	{"non-map value is specified", notAField, `write it as "name: value"` + cutShort},
}

// syntax reports what the YAML parser found in the tokens, with its cause where
// that is one of those that people write.
func (s *source) syntax(tokens token.Tokens, err error) {
	at, problem, remedy := place{1, 1}, "the YAML parser gave up", "correct the YAML there"
	var e yaml.Error
	var t *token.Token
	if errors.As(err, &e) {
		problem = e.GetMessage()
		if t = e.GetToken(); t != nil {
			at = tokenPlace(t)
		}
	}
	if t != nil && s.unclosed(tokens, t, problem) {
		return
	}
	if p, r := s.displaced(at, problem); p != "" {
		problem, remedy = p, r
	}
	for _, w := range words {
		if strings.HasPrefix(problem, w.found) {
			problem, remedy = w.problem, w.remedy
			break
		}
	}
	if p, r := unnamed(s.rest(at)); p != "" && (problem == notAField || problem == notAPart) {
		problem, remedy = p, r
	}
	s.add(at, problem, remedy)
}

// displaced gives the words for what the parser says of a value that stands where
// none can: a line is shifted, a bracket is one too many, or a text has a colon in
// it.
func (s *source) displaced(at place, found string) (problem, remedy string) {
	rest := s.rest(at)
	switch {
	case strings.HasPrefix(found, "value is not allowed in this context") && strings.HasPrefix(rest, "]"):
		return "could not find '[' character", ""
	case strings.HasPrefix(found, "value is not allowed in this context") && strings.HasPrefix(rest, "}"):
		return "could not find '{' character", ""
	case found == "value is not allowed in this context":
		return "the indentation is off", align
	case found == "non-map value is specified" && strings.HasPrefix(rest, "- "):
		return "the indentation is off", align
	case found != "mapping value is not allowed in this context":
		return "", ""
	case strings.Contains(rest, ":"):
		return "the text has a colon in it", "put it in quotes, or write one field on each line"
	}
	return "the indentation is off below this text", align
}

// unclosed complains, where the parser misses a comma or a bracket before t, of
// the bracket that is open there, if what follows cannot be within it, and else of
// the comma.
func (s *source) unclosed(tokens token.Tokens, t *token.Token, found string) bool {
	if found != "',' or ']' must be specified" && found != "',' or '}' must be specified" {
		return false
	}
	var open []*token.Token
	for _, before := range tokens {
		if before == t {
			break
		}
		switch before.Type {
		case token.SequenceStartType, token.MappingStartType:
			open = append(open, before)
		case token.SequenceEndType, token.MappingEndType:
			open = open[:max(0, len(open)-1)]
		}
	}
	if len(open) == 0 {
		return false
	}
	what, bracket, at := "list", "]", open[len(open)-1]
	if at.Type == token.MappingStartType {
		what, bracket = "mapping", "}"
		if t.Type == token.SequenceEndType && !slices.ContainsFunc(open, func(o *token.Token) bool { return o.Type == token.SequenceStartType }) {
			s.add(tokenPlace(t), noList, noListRemedy)
			return true
		}
	}
	below := t.Position.Line > at.Position.Line && t.Next != nil && t.Next.Type == token.MappingValueType
	if below || t.Type == token.SequenceEntryType || t.Type == token.SequenceEndType || t.Type == token.MappingEndType {
		s.add(tokenPlace(at), fmt.Sprintf("a %s is opened and not closed", what), "close it with "+bracket+cutShort)
		return true
	}
	s.add(tokenPlace(t), fmt.Sprintf("a comma or %s is missing before this", bracket), "divide what is within by commas, and write "+bracket+" at the end")
	return true
}

// checkLines complains of texts without quotes that go on in the next line, since
// the name in this one has no colon or the "-" in that one is indented more. YAML
// joins them, and the parser then tells of what became of it, if of anything.
func (s *source) checkLines(tokens token.Tokens) bool {
	for _, t := range tokens {
		head, tail, more := strings.Cut(strings.TrimSpace(t.Origin), "\n")
		if t.Type != token.StringType || !more {
			continue
		}
		first := begins(t)
		isValue := follows(t, token.MappingValueType)
		isName := t.Next != nil && t.Next.Type == token.MappingValueType
		problem, remedy := unnamed(head)
		switch {
		case !isValue && problem != "":
			s.add(place{first, s.column(first, head)}, problem, remedy)
			return false // what follows is read as what it is not
		case !isValue && isName:
			s.add(place{first, s.column(first, head)}, notAField, `write it as "name: value"`)
			return false
		case strings.HasPrefix(strings.TrimSpace(tail), "- "):
			next := first + 1 + strings.Count(tail[:strings.Index(tail, "-")], "\n")
			s.add(place{next, s.column(next, "-")}, "the line is indented more than the one above, and so goes on its text", `align its "-" under the one above`)
		}
	}
	return len(s.list) == 0
}

// begins is the line in which a text begins. Of one that ends the file its own
// place is another.
func begins(t *token.Token) int {
	line := 1
	if t.Prev != nil {
		line = t.Prev.Position.Line + strings.Count(strings.TrimLeft(t.Prev.Origin, " \n"), "\n")
	}
	return line + strings.Count(t.Origin[:len(t.Origin)-len(strings.TrimLeft(t.Origin, " \n"))], "\n")
}

// column is where a line first has a text, in characters from 1.
func (s *source) column(line int, text string) int {
	before, _, _ := strings.Cut(string(s.line(line)), strings.TrimSpace(text))
	return 1 + utf8.RuneCountInString(before)
}

// unnamed says what a line lacks that begins with the name of a field: its colon,
// or the blank after that. It says nothing of any other line.
func unnamed(line string) (problem, remedy string) {
	name := line[:len(line)-len(strings.TrimLeft(line, "abcdefghijklmnopqrstuvwxyz"))]
	rest := line[len(name):]
	switch {
	case !slices.Contains(append(policyFields, limitFields...), name):
		return "", ""
	case strings.HasPrefix(rest, ":") && len(rest) > 1 && rest[1] != ' ':
		return fmt.Sprintf(`a blank is missing after "%s:"`, name), fmt.Sprintf(`write "%s: " and then the value`, name)
	case rest == "" || strings.HasPrefix(rest, " ") && !strings.HasPrefix(strings.TrimLeft(rest, " "), ":"):
		return fmt.Sprintf(`":" is missing after %s`, name), fmt.Sprintf(`write "%s:" and then the value`, name)
	}
	return "", ""
}

// rest is what a line has from a place on.
func (s *source) rest(at place) string {
	line := s.line(at.line)
	return string(line[min(max(0, at.column-1), len(line)):])
}
