package bus

// maxDepth is how deep values may be nested, as encoding/json has it.
const maxDepth = 10_000

// valid says what json.Valid says, several times faster: whether b is one JSON
// value. Every message is judged by it first, so that the readers can trust the
// grammar.
func valid(b []byte) bool {
	i := grammar(b, space(b, 0), 0)
	return i >= 0 && space(b, i) == len(b)
}

// grammar gives the end of the value that begins at b[i], at a depth, or -1 if none
// does.
func grammar(b []byte, i, depth int) int {
	if i >= len(b) {
		return -1
	}
	switch c := b[i]; c {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		if depth == maxDepth {
			return -1
		}
		return membersEnd(b, i, depth+1)
	case 't':
		return wordEnd(b, i, "true")
	case 'f':
		return wordEnd(b, i, "false")
	case 'n':
		return wordEnd(b, i, "null")
	default:
		return numberEnd(b, i)
	}
}

// membersEnd is grammar for an object or a list.
func membersEnd(b []byte, i, depth int) int {
	named, closing := b[i] == '{', b[i]+2 // in ASCII the closing bracket is two on
	if i = space(b, i+1); i < len(b) && b[i] == closing {
		return i + 1
	}
	for {
		if named {
			if i >= len(b) || b[i] != '"' {
				return -1
			}
			if i = stringEnd(b, i); i < 0 {
				return -1
			}
			if i = space(b, i); i == len(b) || b[i] != ':' {
				return -1
			}
			i = space(b, i+1)
		}
		if i = grammar(b, i, depth); i < 0 {
			return -1
		}
		if i = space(b, i); i == len(b) {
			return -1
		}
		switch b[i] {
		case closing:
			return i + 1
		case ',':
			i = space(b, i+1)
		default:
			return -1
		}
	}
}

func wordEnd(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// stringEnd does not judge UTF-8.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < 0x20:
			return -1
		case c == '\\':
			if i++; i == len(b) {
				return -1
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if len(b)-i < 5 || !hexDigit(b[i+1]) || !hexDigit(b[i+2]) || !hexDigit(b[i+3]) || !hexDigit(b[i+4]) {
					return -1
				}
				i += 4
			default:
				return -1
			}
		}
	}
	return -1
}

func hexDigit(c byte) bool { return digit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func digit(c byte) bool { return '0' <= c && c <= '9' }

func numberEnd(b []byte, i int) int {
	digits := func() bool { // at least one
		start := i
		for i < len(b) && digit(b[i]) {
			i++
		}
		return i > start
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i++; !digits() {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}
