package lease

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

const (
	// maxPolicyLen is the longest policy accepted, in bytes.
	maxPolicyLen = 1 << 20
	// maxBlank is how many lines in a row may be blank. The lexer goes through
	// a block of text once for each that ends it.
	maxBlank = 100
)

// source is one policy file on its way to being read.
type source struct {
	complaints
	lines [][]rune
}

// document gives the file's only YAML document, or nil after a complaint.
func (s *source) document(text []byte) ast.Node {
	if len(text) > maxPolicyLen {
		s.add(place{1, 1}, fmt.Sprintf("the policy has %d bytes, at most %d are allowed", len(text), maxPolicyLen),
			"let patterns such as {account} stand for many keys")
		return nil
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	if !s.checkText(text) {
		return nil
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		s.lines = append(s.lines, []rune(line))
	}
	// Without an end of line the lexer drops an unfinished last token.
	tokens := lexer.Tokenize(string(text) + "\n")
	if !s.checkTokens(tokens) || !s.checkLines(tokens) {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		s.syntax(tokens, err)
		return nil
	}
	for _, d := range file.Docs {
		if d.Body != nil {
			return d.Body // there is no other: checkTokens has seen to it
		}
	}
	s.add(place{1, 1}, "the policy is empty", `write at least one limit: its key under "limits:", and its rules`)
	return nil
}

// checkText refuses what is not a text. A tab is refused wherever it stands:
// YAML forbids it where people put it, as indentation.
func (s *source) checkText(text []byte) bool {
	at, blank := place{1, 1}, 0
	for i := 0; i < len(text); {
		c, size := utf8.DecodeRune(text[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			s.add(at, fmt.Sprintf("the byte %#02x is not UTF-8", text[i]), "save the policy as UTF-8 text")
			return false
		case c == '\t':
			s.add(at, "there is a tab", `indent with spaces, and write \t for a tab in double quotes`)
			return false
		case c < ' ' && c != '\n' || c == 0x7f:
			s.add(at, fmt.Sprintf("the control character %U is no text", c), "remove it, if the file is a policy at all")
			return false
		case blank > maxBlank:
			s.add(at, fmt.Sprintf("more than %d lines in a row are blank", maxBlank), "remove some")
			return false
		}
		at.column++
		if c == '\n' {
			at = place{at.line + 1, 1}
			blank++
		} else if c != ' ' {
			blank = 0
		}
		i += size
	}
	return true
}
