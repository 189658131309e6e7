package lease

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"ration/algo"
)

const (
	// maxGuard is the largest guard accepted.
	maxGuard = 24 * time.Hour
	// maxTwoRules is the longest text, in bytes, that is searched for two rules.
	maxTwoRules = 200

	rulesRemedy = "write at least one, such as rules: [10/1s], or rules: [unlimited] to limit nothing"
)

var (
	policyFields = []string{"mirror", "unknown", "limits", "plans", "assign"}
	limitFields  = []string{"key", "rules", "guard", "line", "shadow"}
)

// ParsePolicy reads a policy in YAML. The name is that of the file, for errors:
//
//	mirror: strict                         # or available: grant also while it is away
//	unknown: refuse                        # or allow: a key that no limit names
//	limits:
//	  - key: "{account}/{stage}/search"    # a Pattern, in quotes because of the brace
//	    rules: [100/1s, 4 concurrent]      # as algo.ParseRule reads them; or [unlimited]
//	    guard: 50ms                        # 0 unless given, at most 24h
//	    line: {premium: 500, standard: 100, lower: 5%}   # or line: 20
//	  - key: "{account}"
//	    rules: [20/1s]
//	    shadow: true                       # count what it would refuse, and refuse nothing
//	plans:                                 # rules under a name
//	  free: {rules: [10/1s, 10000/1d fixed], class: standard}
//	assign:                                # which keys keep to them besides
//	  "{account}": free
//
// It is UTF-8 of at most 1 MiB and uses no more of YAML than this: other fields,
// anchors, tags, blocks of text, tabs and second documents are errors. A policy
// that is wrong anywhere is refused whole, with an error that joins up to ten
// [PolicyError] in the order of their places.
func ParsePolicy(name string, text []byte) (*Policy, error) {
	r := reader{source: source{complaints: complaints{file: name}}}
	p := &Policy{root: new(branch)}
	if root := r.document(text); root != nil {
		r.policy(root, p)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return p, nil
}

// reader reads the nodes of one file, complaining of each that is wrong and
// going on with the next.
type reader struct {
	source
	classes ranking
}

func (r *reader) policy(root ast.Node, p *Policy) {
	fields := r.fields(root, "the policy", policyFields)
	if fields == nil {
		return
	}
	if f, ok := fields["mirror"]; ok && r.chosen(f, StrictMirror.String(), AvailableMirror.String()) {
		p.Mirror = AvailableMirror
	}
	if f, ok := fields["unknown"]; ok && r.chosen(f, RefuseUnknown.String(), AllowUnknown.String()) {
		p.Unknown = AllowUnknown
	}
	list, limited := fields["limits"]
	assign, assigned := fields["assign"]
	if !limited && !assigned {
		r.add(nodePlace(root), "the policy has no limits", `write them as a list under "limits:"`)
	}
	r.limits(list, p)
	p.Classes = r.classes.order()
	r.plans(fields["plans"], p)
	r.assign(assign, p)
}

// limits reads the limits.
func (r *reader) limits(list field, p *Policy) {
	items := r.items(list, `write a list of limits, each beginning with "- key:"`)
	p.Limits = make([]Limit, 0, len(items)) // never grown: the tree points into it
	first := map[string]Limit{}
	for _, item := range items {
		l, segments, at := r.limit(item)
		if segments == nil {
			continue
		}
		if before, twice := first[l.Pattern.shape]; twice {
			r.twice(at, before, l)
			continue
		}
		first[l.Pattern.shape] = l
		p.Limits = append(p.Limits, l)
		p.root.plant(segments).bound.Limit = &p.Limits[len(p.Limits)-1]
	}
}

// chosen says whether the second of two words was chosen, and not the usual one.
func (r *reader) chosen(f field, usual, other string) bool {
	remedy := fmt.Sprintf("write %s or %s", usual, other)
	t, ok := r.text(f, remedy)
	if ok && t.value != usual && t.value != other {
		r.add(t.at, fmt.Sprintf("%s is %.40q", f.name, t.value), remedy)
	}
	return ok && t.value == other
}

// limit reads one limit. It gives no segments where the key is wrong.
func (r *reader) limit(n ast.Node) (l Limit, segments []segment, at place) {
	fields := r.fields(n, "the limit", limitFields)
	if fields == nil {
		return Limit{}, nil, place{}
	}
	l.Line = nodePlace(n).line
	var places []place
	if f, ok := fields["rules"]; ok {
		l.Rules, places = r.rules(f)
	} else {
		r.add(nodePlace(n), "the limit has no rules", rulesRemedy)
	}
	if f, ok := fields["guard"]; ok {
		l.Guard = r.guard(f)
	}
	if f, ok := fields["line"]; ok {
		l.Waiting = r.waitingLine(f)
	}
	if f, ok := fields["shadow"]; ok {
		l.Shadow = r.truth(f)
	}
	for i, rule := range l.Rules {
		if l.Shadow && rule.Kind == algo.Concurrent {
			r.add(places[i], fmt.Sprintf("%s stands in a limit in shadow, which asks nobody for a slot", rule), "leave it out here, or let the limit bind")
		}
		if problem, remedy := rule.Starved(l.Guard); problem != "" {
			r.add(places[i], problem, remedy)
		}
	}
	f, ok := fields["key"]
	if !ok {
		r.add(nodePlace(n), "the limit has no key", `write which keys it is for, such as key: "{account}"`)
		return Limit{}, nil, place{}
	}
	t, ok := r.text(f, `write the key in quotes, such as key: "{account}/search"`)
	if !ok {
		return Limit{}, nil, place{}
	}
	l.Pattern, segments = r.pattern(t)
	return l, segments, t.at
}

// truth reads true or false.
func (r *reader) truth(f field) bool {
	if f.value == nil {
		return false
	}
	if f.value.Type() != ast.BoolType {
		r.add(r.blame(f), fmt.Sprintf("%s is %s, neither true nor false", f.name, describe(f.value)), fmt.Sprintf("write %s: true, or leave it out", f.name))
		return false
	}
	return f.value.(*ast.BoolNode).Value
}

// pattern reads a pattern. It gives no segments after a complaint.
func (r *reader) pattern(t scalar) (Pattern, []segment) {
	pattern, segments, wrong := parsePattern(t.value)
	if wrong != nil {
		r.add(t.place(utf8.RuneCountInString(t.value[:wrong.index])), wrong.problem, wrong.remedy)
	}
	return pattern, segments
}

func (r *reader) twice(at place, before, l Limit) {
	problem := fmt.Sprintf("the key %.80q is limited on line %d already", l.Pattern.text, before.Line)
	if before.Pattern != l.Pattern {
		problem = fmt.Sprintf("the key %.80q matches the same keys as %.80q on line %d", l.Pattern.text, before.Pattern.text, before.Line)
	}
	r.add(at, problem, "keep one of the two, with the rules of both")
}

// rules reads a list of rules, no two of which may count the same, and gives the
// place of each.
func (r *reader) rules(f field) (rules []algo.Rule, places []place) {
	var unlimited place
	first := map[algo.Rule]algo.Rule{}
	var split place // the end of a number that has commas in it
	for _, n := range r.items(f, rulesRemedy) {
		if at := nodePlace(n); at.line == split.line && at.column < split.column {
			continue // the rest of it
		}
		if end := r.splitNumber(n); end != (place{}) {
			split = end
			continue
		}
		t, ok := r.text(field{"the rule", nodePlace(n), n}, "write what it limits, such as 10/1s or 4 concurrent")
		if !ok {
			continue
		}
		rule, err := algo.ParseRule(t.value)
		if err != nil {
			r.badRule(t, err)
			continue
		}
		same := counted(rule)
		if before, twice := first[same]; twice {
			r.conflict(t.at, before, rule)
			continue
		}
		first[same] = rule
		rules, places = append(rules, rule), append(places, t.at)
		if rule.Kind == algo.Unlimited {
			unlimited = t.at
		}
	}
	if unlimited != (place{}) && len(rules) > 1 {
		r.add(unlimited, "unlimited stands beside another rule", "keep the one that is meant")
	}
	return rules, places
}

// commas is a number with commas between its thousands, which divide a list.
var commas = regexp.MustCompile(`\b(\d{1,3}(?:,\d{3})+)(?:\D|$)`)

// splitNumber complains of a number with commas in it of which an entry that is no
// rule is a part, and gives its end, or nothing if there is none.
func (r *reader) splitNumber(n ast.Node) (end place) {
	text := n.GetToken().Value
	if _, err := algo.ParseRule(text); err == nil {
		return place{}
	}
	from := nodePlace(n)
	line := string(r.line(from.line))
	until := from.column + utf8.RuneCountInString(text)
	for _, m := range commas.FindAllStringSubmatchIndex(line, -1) {
		at, end := 1+utf8.RuneCountInString(line[:m[2]]), 1+utf8.RuneCountInString(line[:m[3]])
		within := from.column <= at && at < until || at < from.column && from.column < end && !strings.Contains(text, "/")
		if !within {
			continue
		}
		digits := strings.ReplaceAll(line[m[2]:m[3]], ",", "")
		r.add(place{from.line, at}, "commas divide the rules of a list, and this number has one",
			fmt.Sprintf("write %s, or %s", digits, strings.ReplaceAll(line[m[2]:m[3]], ",", "_")))
		return place{from.line, end}
	}
	return place{}
}

func (r *reader) badRule(t scalar, err error) {
	if first, second, at := twoRules(t.value); at > 0 {
		r.add(t.place(at), "two rules stand there without a comma", fmt.Sprintf("write %s, %s", first, second))
		return
	}
	e := &algo.RuleError{Problem: err.Error(), Remedy: "correct the rule"}
	errors.As(err, &e)
	r.add(t.place(max(0, e.Column-1)), e.Problem, e.Remedy)
}

// twoRules finds a place in text, counted in characters, before which one rule
// stands and after which another; 0 is none.
func twoRules(text string) (first, second string, at int) {
	for i, c := range text {
		if c != ' ' || len(text) > maxTwoRules {
			continue
		}
		first, second := strings.TrimSpace(text[:i]), strings.TrimSpace(text[i:])
		if _, err := algo.ParseRule(first); err != nil {
			continue
		}
		if _, err := algo.ParseRule(second); err == nil {
			return first, second, utf8.RuneCountInString(text[:len(text)-len(strings.TrimLeft(text[i:], " "))])
		}
	}
	return "", "", 0
}

func (r *reader) conflict(at place, before, rule algo.Rule) {
	if before == rule {
		r.add(at, fmt.Sprintf("the rule %s stands twice", rule), "remove one of the two")
		return
	}
	r.add(at, fmt.Sprintf("the rules %s and %s count the same, only to another limit", before, rule), "keep the one that is meant")
}

// counted is what two rules have in common of which the stricter would do.
func counted(rule algo.Rule) algo.Rule {
	return algo.Rule{Kind: rule.Kind, Period: rule.Period, Zone: rule.Zone, Unit: rule.Unit}
}

func (r *reader) guard(f field) time.Duration {
	const (
		remedy = "write the time with its unit, such as guard: 50ms"
		units  = "write a number and its unit, ns, us, ms, s, m or h, without a blank, such as guard: 50ms"
	)
	if f.value != nil && f.value.Type() == ast.IntegerType && f.value.GetToken().Value == "0" {
		return 0
	}
	t, ok := r.text(f, remedy)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(t.value)
	switch {
	case err != nil:
		r.add(t.at, fmt.Sprintf("guard is %.40q, which cannot be read as a time", t.value), units)
	case d < 0:
		r.add(t.at, fmt.Sprintf("guard is %s, below 0", t.value), "write 0 or the time by which one call may arrive later than another")
	case d > maxGuard:
		r.add(t.at, fmt.Sprintf("guard is %s, above 24h", t.value), "write at most 24h")
	default:
		return d
	}
	return 0
}
