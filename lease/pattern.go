package lease

import (
	"fmt"
	"strings"
)

// Pattern says which keys a limit is for: segments between slashes, each of
// them a literal or a name in braces. "acme/{stage}/search" matches the key
// "acme/prod/search", and with it the first three segments of any longer key.
//
//   - {name} matches any one segment. The name is for people: letters, digits,
//     "_" and "-". Patterns that differ only in names are the same pattern.
//   - Any other segment matches itself, byte by byte: "*" and ">" have no meaning.
//     A brace in it is written twice: "{{x}}" matches the segment "{x}".
//
// A pattern is comparable and never changes.
type Pattern struct {
	text  string
	shape string
}

// String is the pattern as the policy writes it.
func (p Pattern) String() string { return p.text }

// segment is one step of a pattern: a literal, or any segment.
type segment struct {
	literal string
	named   bool
}

// fault is what is wrong with a text, and where in it: Index counts bytes.
type fault struct {
	index   int
	problem string
	remedy  string
}

// parsePattern reads a pattern. Its segments are those of the pattern, in
// order; nobody needs them once the policy's tree is built.
func parsePattern(text string) (Pattern, []segment, *fault) {
	if text == "" {
		return Pattern{}, nil, &fault{0, "the key is empty", "give at least one segment"}
	}
	var (
		segments []segment
		names    = map[string]bool{}
		shortest = -1 // the length of the shortest key that matches
		start    = 0
	)
	for part := range strings.SplitSeq(text, "/") {
		s, name, f := parseSegment(part)
		if f == nil && name != "" && names[name] {
			f = &fault{0, fmt.Sprintf("the name {%s} stands twice in %.80q", name, text), "give each segment a name of its own"}
		}
		if f != nil {
			f.index += start
			return Pattern{}, nil, f
		}
		if name != "" {
			names[name] = true
		}
		segments = append(segments, s)
		shortest += 1 + max(1, len(s.literal))
		start += len(part) + 1
	}
	if shortest > MaxKeyLen {
		return Pattern{}, nil, &fault{0,
			fmt.Sprintf("the key matches nothing shorter than %d bytes, and no key is longer than %d", shortest, MaxKeyLen), "shorten it"}
	}
	return Pattern{text, shape(segments)}, segments, nil
}

// parseSegment reads one segment, and gives the name that stands in it.
func parseSegment(text string) (segment, string, *fault) {
	switch {
	case text == "":
		return segment{}, "", &fault{0, "a segment of the key is empty", "remove the extra slash"}
	case text[0] == '{' && !strings.HasPrefix(text, "{{"):
		name, f := parseName(text)
		return segment{named: true}, name, f
	}
	var literal strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '{' || c == '}' {
			if i+1 == len(text) || text[i+1] != c {
				return segment{}, "", &fault{i, fmt.Sprintf("a single %c stands within the segment %.80q", c, text),
					fmt.Sprintf("let {name} be the whole segment, or write %c%c for the character itself", c, c)}
			}
			i++
		}
		literal.WriteByte(c)
	}
	return segment{literal: literal.String()}, "", nil
}

// parseName reads "{name}".
func parseName(text string) (string, *fault) {
	name, closed := strings.CutSuffix(text[1:], "}")
	switch {
	case !closed:
		return "", &fault{0, fmt.Sprintf("the segment %.80q opens a name and does not end with it", text),
			"let {name} be the whole segment, or write {{ for the character itself"}
	case name == "":
		return "", &fault{0, "{} has no name", "give it one, such as {account}"}
	}
	for i, c := range name {
		if !strings.ContainsRune("_-", c) && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return "", &fault{1 + i, fmt.Sprintf("a name has no %q", c), `use letters, digits, "_" and "-", or write {{ and }} for the characters themselves`}
		}
	}
	return name, nil
}

// common gives a key of as many segments that both patterns match, and no pattern that
// has a literal where both have a name; false if there is none.
func (p Pattern) common(q Pattern) (Key, bool) {
	_, ours, _ := parsePattern(p.text)
	_, theirs, _ := parsePattern(q.text)
	if len(ours) != len(theirs) {
		return "", false
	}
	for i := range ours {
		switch a, b := &ours[i], theirs[i]; {
		case a.named:
			*a = b
		case !b.named && a.literal != b.literal:
			return "", false
		}
	}
	key := example(ours)
	return key, len(key) <= MaxKeyLen
}

// example is a key that the pattern matches, in which no literal of another stands
// where it has a name.
func (p Pattern) example() Key {
	_, segments, _ := parsePattern(p.text)
	return example(segments)
}

func example(segments []segment) Key {
	parts := make([]string, len(segments))
	for i, s := range segments {
		if parts[i] = s.literal; s.named {
			parts[i] = "\xff" // no policy has it: they are UTF-8
		}
	}
	return Key(strings.Join(parts, "/"))
}

// literaler says that p is more literal than q, which matches some of the same keys of as
// many segments: the first segment decides that is literal in one and a name in the other.
func (p Pattern) literaler(q Pattern) bool {
	_, ours, _ := parsePattern(p.text)
	_, theirs, _ := parsePattern(q.text)
	for i := range ours {
		if ours[i].named != theirs[i].named {
			return theirs[i].named
		}
	}
	return false
}

// shape is what two patterns have in common that match the same keys.
func shape(segments []segment) string {
	var b strings.Builder
	for i, s := range segments {
		if i > 0 {
			b.WriteByte('/')
		}
		if s.named {
			b.WriteByte('/') // no literal begins with a slash
		}
		b.WriteString(s.literal)
	}
	return b.String()
}
