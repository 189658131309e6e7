package lease

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"ration/algo"
)

// String is the policy in its canonical form: what ParsePolicy reads as the
// same policy, but for the lines, without comments and with every rule spelt as
// algo.Rule spells it. Limits and rules keep their order.
func (p *Policy) String() string {
	var b strings.Builder
	if p.Mirror != StrictMirror {
		fmt.Fprintf(&b, "mirror: %s\n", p.Mirror)
	}
	fmt.Fprintf(&b, "unknown: %s\n", p.Unknown)
	if len(p.Limits) > 0 {
		b.WriteString("limits:\n")
	}
	for _, l := range p.Limits {
		fmt.Fprintf(&b, "  - key: %s\n    rules: [%s]\n", quote(l.Pattern.text), ruleList(l.Rules))
		if l.Guard != 0 {
			fmt.Fprintf(&b, "    guard: %s\n", spell(l.Guard))
		}
		if len(l.Waiting.Classes) > 0 {
			fmt.Fprintf(&b, "    line: %s\n", &l.Waiting)
		}
		if l.Shadow {
			b.WriteString("    shadow: true\n")
		}
	}
	if len(p.Plans) > 0 {
		b.WriteString("plans:\n")
	}
	for _, plan := range p.Plans {
		class := ""
		if plan.Class != "" {
			class = ", class: " + plan.Class
		}
		fmt.Fprintf(&b, "  %s: {rules: [%s]%s}\n", quote(plan.Name), ruleList(plan.Rules), class)
	}
	if len(p.Assigned) > 0 {
		b.WriteString("assign:\n")
	}
	for _, a := range p.Assigned {
		fmt.Fprintf(&b, "  %s: %s\n", quote(a.Pattern.text), quote(a.Plan.Name))
	}
	return b.String()
}

func ruleList(rules []algo.Rule) string {
	var texts []string
	for _, r := range rules {
		texts = append(texts, r.String())
	}
	return strings.Join(texts, ", ")
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
