package lease

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// String is the policy in its canonical form: what ParsePolicy reads as the
// same policy, but for the lines, without comments and with every rule spelt as
// algo.Rule spells it. Limits and rules keep their order.
func (p *Policy) String() string {
	var b strings.Builder
	if p.Mirror != StrictMirror {
		fmt.Fprintf(&b, "mirror: %s\n", p.Mirror)
	}
	fmt.Fprintf(&b, "unknown: %s\nlimits:\n", p.Unknown)
	for _, l := range p.Limits {
		fmt.Fprintf(&b, "  - key: %s\n    rules: [", quote(l.Pattern.text))
		for i, r := range l.Rules {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(r.String())
		}
		b.WriteString("]\n")
		if l.Guard != 0 {
			fmt.Fprintf(&b, "    guard: %s\n", spell(l.Guard))
		}
	}
	return b.String()
}

// quote writes s as YAML does in double quotes, on one line.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// spell writes d without the minutes and seconds that are 0 at its end.
func spell(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
