package lease

import (
	"strings"

	"ration/algo"
)

// Loose is a rule that can never bind, since another that counts the same and more
// allows less.
type Loose struct {
	// Rule is that of a limit, or of a plan, which binds Key.
	Rule algo.Rule
	Plan string // empty for a limit
	Key  Pattern
	Line int
	// Under is the one that binds before it, on every key that Key matches but those
	// for which the policy names a more literal one.
	Under     algo.Rule
	UnderPlan string
	UnderKey  Pattern
	UnderLine int
}

// Loose lists the rules of children that are looser than their parents, and those of
// plans that are looser than the limit of the same keys, in the order of the file.
func (p *Policy) Loose() []Loose {
	var loose []Loose
	for _, l := range p.Limits {
		if l.Shadow {
			continue // it binds nobody anyhow
		}
		loose = append(loose, p.looser(l.Rules, Loose{Key: l.Pattern, Line: l.Line})...)
	}
	for _, a := range p.Assigned {
		loose = append(loose, p.looser(a.Plan.Rules, Loose{Plan: a.Plan.Name, Key: a.Pattern, Line: a.Line})...)
	}
	return loose
}

// looser finds what binds before each of the rules of what found tells of.
func (p *Policy) looser(rules []algo.Rule, found Loose) (all []Loose) {
	key := found.Key.example()
	for _, found.Rule = range rules {
		for _, m := range p.Match(key) {
			parent := m.Prefix != key
			if m.Limit != nil && !m.Limit.Shadow && (parent || found.Plan != "") {
				if under, ok := tighter(found.Rule, m.Limit.Rules); ok {
					found.Under, found.UnderPlan, found.UnderKey, found.UnderLine = under, "", m.Limit.Pattern, m.Limit.Line
					all = append(all, found)
					break
				}
			}
			if m.Plan != nil && parent {
				if under, ok := tighter(found.Rule, m.Plan.Rules); ok {
					a := p.assignmentOf(m.Prefix)
					found.Under, found.UnderPlan, found.UnderKey, found.UnderLine = under, m.Plan.Name, a.Pattern, a.Line
					all = append(all, found)
					break
				}
			}
		}
	}
	return all
}

// assignmentOf gives the assignment by which a prefix has its plan: the most literal one.
func (p *Policy) assignmentOf(prefix Key) (found Assignment) {
	for _, a := range p.Assigned {
		if a.Pattern.matches(prefix) && (found.Plan == nil || a.Pattern.literaler(found.Pattern)) {
			found = a
		}
	}
	return found
}

// tighter gives the rule that counts the same as r and allows less.
func tighter(r algo.Rule, rules []algo.Rule) (algo.Rule, bool) {
	for _, other := range rules {
		if counted(other) == counted(r) && other.Limit <= r.Limit && other.Burst <= r.Burst && other != r {
			return other, true
		}
	}
	return algo.Rule{}, false
}

// matches says that the pattern matches exactly this key.
func (p Pattern) matches(k Key) bool {
	_, segments, _ := parsePattern(p.text)
	parts := strings.Split(string(k), "/")
	if len(parts) != len(segments) {
		return false
	}
	for i, s := range segments {
		if !s.named && s.literal != parts[i] {
			return false
		}
	}
	return true
}
