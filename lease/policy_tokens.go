package lease

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// Bounds on what is handed to the YAML parser, which recurses into what is
// nested, and for each field of a mapping and each missing value goes through
// much of the file again. A policy nests 4 deep, has 3 fields in a mapping and
// misses no value.
const (
	maxNesting = 16
	maxFields  = 64
	maxHollows = 64
)

// tally counts, along the tokens of a file, what is bounded.
type tally struct {
	braces  []bool // of each bracket that is open, whether it is a brace
	line    int
	entries int  // dashes on this line
	fields  int  // since the last dash or opening brace
	hollows int  // missing values
	begun   bool // something but comments and directives has been seen
	ended   bool // the document has ended
	second  bool // and another one begins
}

// checkTokens refuses the parts of YAML that a policy has no use for, so that
// nothing is expanded or nested before it is known to be small.
func (s *source) checkTokens(tokens token.Tokens) bool {
	var seen tally
	for _, t := range tokens {
		at := tokenPlace(t)
		if problem, remedy := foreign(t); problem != "" {
			s.add(at, problem, remedy)
		}
		seen.count(t)
		switch {
		case seen.second:
			s.add(at, "a second document begins", "write one policy in one file, and remove the ---")
			return false
		case len(seen.braces) > maxNesting || seen.entries > maxNesting:
			s.add(at, "lists and mappings stand too deep in each other", "a policy has limits:, a list of limits, and in each a list of rules")
			return false
		case seen.fields > maxFields:
			s.add(at, fmt.Sprintf("there are more than %d fields in one mapping", maxFields), `begin each limit with "- key:"`)
			return false
		case seen.hollows > maxHollows:
			s.add(at, fmt.Sprintf("there are more than %d fields and entries without a value", maxHollows), "write their values, or remove them")
			return false
		}
	}
	return len(s.list) == 0
}

func (c *tally) count(t *token.Token) {
	switch t.Type {
	case token.CommentType, token.DirectiveType:
	case token.DocumentHeaderType:
		c.second = c.begun
		c.begun = true
	default:
		c.second = c.ended
		c.begun = true
		c.ended = t.Type == token.DocumentEndType
	}
	if t.Position.Line != c.line {
		c.line, c.entries = t.Position.Line, 0
	}
	inBraces := len(c.braces) > 0 && c.braces[len(c.braces)-1]
	switch t.Type {
	case token.SequenceEntryType:
		c.entries++
		c.fields = 0
	case token.SequenceStartType:
		c.braces = append(c.braces, false)
	case token.MappingStartType:
		c.braces = append(c.braces, true)
		c.fields = 0
	case token.SequenceEndType, token.MappingEndType:
		c.braces = c.braces[:max(0, len(c.braces)-1)]
	case token.MappingValueType:
		c.fields++
	default:
		if inBraces && closes(t.Next) && !follows(t, token.MappingValueType) {
			c.hollows++ // a name without even a colon
		}
		return
	}
	if hollow(t) {
		c.hollows++
	}
}

// hollow says that t wants a value and is followed by what cannot be it.
func hollow(t *token.Token) bool {
	column := t.Position.Column
	switch {
	case t.Type == token.MappingValueType && t.Prev != nil:
		column = t.Prev.Position.Column
	case t.Type != token.SequenceEntryType:
		return false
	}
	next := t.Next
	for next != nil && next.Type == token.CommentType {
		next = next.Next
	}
	if closes(next) {
		return true
	}
	if t.Type == token.MappingValueType && next.Type == token.SequenceEntryType {
		column-- // a list may stand as far left as the name of its field
	}
	return next.Position.Line > t.Position.Line && next.Position.Column <= column
}

// closes says that no value begins with t.
func closes(t *token.Token) bool {
	if t == nil {
		return true
	}
	switch t.Type {
	case token.CollectEntryType, token.SequenceEndType, token.MappingEndType:
		return true
	}
	return false
}

func follows(t *token.Token, before token.Type) bool { return t.Prev != nil && t.Prev.Type == before }

// foreign says why a token has no place in a policy, or nothing if it has one.
func foreign(t *token.Token) (problem, remedy string) {
	switch t.Type {
	case token.MappingStartType:
		if follows(t, token.MappingValueType) && t.Prev.Prev != nil && t.Prev.Prev.Value == "key" {
			return "the key begins with {, which opens a mapping in YAML", `put the key in quotes, such as key: "{account}/search"`
		}
	case token.AnchorType, token.AliasType, token.MergeKeyType:
		return "anchors, aliases and merge keys (&, *, <<) have no place in a policy", "write the value itself, in quotes if it begins so"
	case token.TagType:
		return fmt.Sprintf("the tag %.40q has no place in a policy", t.Value), "remove it, or put the value in quotes if it begins with !"
	case token.DirectiveType:
		return "directives (%) have no place in a policy", "remove the line, or put the value in quotes if it begins with %"
	case token.MappingKeyType:
		return "fields that begin with ? have no place in a policy", "write the field as name: value"
	case token.LiteralType, token.FoldedType:
		return noBlocks, noBlocksRemedy
	}
	return "", ""
}

func tokenPlace(t *token.Token) place {
	return place{max(1, t.Position.Line), max(1, t.Position.Column)}
}
