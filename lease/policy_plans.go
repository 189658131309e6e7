package lease

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// maxPlanName is the longest name of a plan, in bytes.
const maxPlanName = 64

var planFields = []string{"rules", "class"}

// plans reads the plans, by name.
func (r *reader) plans(f field, p *Policy) {
	mapping := r.mapping(f, "write each plan under its name, such as free: {rules: [10/1s]}")
	p.Plans = make([]Plan, 0, len(mapping)) // never grown: assignments point into it
	for _, v := range mapping {
		name, ok := r.name(v, "the plan", maxPlanName)
		if !ok {
			continue
		}
		if before := p.plan(name.value); before != nil {
			r.add(name.at, fmt.Sprintf("the plan %s stands on line %d already", name.value, before.Line), "give one of the two another name, or remove it")
			continue
		}
		plan := Plan{Name: name.value, Line: name.at.line}
		fields := r.fields(v.Value, "the plan "+name.value, planFields)
		if rules, ok := fields["rules"]; ok {
			plan.Rules, _ = r.rules(rules)
		} else if fields != nil {
			r.add(name.at, fmt.Sprintf("the plan %s has no rules", name.value), rulesRemedy)
		}
		if class, ok := fields["class"]; ok {
			plan.Class = r.class(class)
		}
		p.Plans = append(p.Plans, plan)
	}
}

// assign reads which keys have which plan.
func (r *reader) assign(f field, p *Policy) {
	first := map[string]Assignment{}
	var places []place
	for _, v := range r.mapping(f, `write which keys have which plan, such as "{account}": free`) {
		key, ok := r.name(v, "the key", MaxKeyLen)
		if !ok {
			continue
		}
		pattern, segments := r.pattern(key)
		plan := r.assigned(field{name: "the plan of " + fmt.Sprintf("%.80q", key.value), at: key.at, value: v.Value}, p)
		if segments == nil || plan == nil {
			continue
		}
		if before, twice := first[pattern.shape]; twice {
			r.add(key.at, fmt.Sprintf("the key %.80q has a plan from line %d already", key.value, before.Line), "keep one of the two")
			continue
		}
		a := Assignment{Pattern: pattern, Plan: plan, Line: key.at.line}
		first[pattern.shape] = a
		p.Assigned, places = append(p.Assigned, a), append(places, key.at)
		p.root.plant(segments).bound.Plan = plan
	}
	for i, a := range p.Assigned { // all of them, since one may keep the keys of another from its plan
		r.starved(places[i], a, p)
	}
}

// starved complains of rules of a plan that grant nothing under the guard of a limit that
// binds some of the same keys.
func (r *reader) starved(at place, a Assignment, p *Policy) {
	for i := range p.Limits {
		l := &p.Limits[i]
		for _, rule := range a.Plan.Rules {
			if problem, _ := rule.Starved(l.Guard); problem != "" && p.meet(l, a) {
				r.add(at, fmt.Sprintf("the plan %s has %s here: %s (the limit on line %d)", a.Plan.Name, rule, problem, l.Line),
					"give the keys another plan, or the limit a shorter guard")
			}
		}
	}
}

// meet says that some key is bound by both the limit and the assignment: no more literal
// ones of that depth keep it from them.
func (p *Policy) meet(l *Limit, a Assignment) bool {
	key, ok := l.Pattern.common(a.Pattern)
	if !ok {
		return false
	}
	return p.boundOf(key).Limit == l && p.assignmentOf(key).Pattern == a.Pattern
}

// Guards gives the shortest and the longest guard that the rules of a plan have on any key,
// which are those of the limits of the same keys.
func (p *Policy) Guards(plan *Plan) (shortest, longest time.Duration) {
	found := false
	note := func(guard time.Duration) {
		if !found {
			shortest, longest, found = guard, guard, true
		}
		shortest, longest = min(shortest, guard), max(longest, guard)
	}
	for _, a := range p.Assigned {
		if a.Plan != plan {
			continue
		}
		note(p.boundOf(a.Pattern.example()).Guard())
		for i := range p.Limits {
			if l := &p.Limits[i]; (l.Guard < shortest || l.Guard > longest) && p.meet(l, a) {
				note(l.Guard)
			}
		}
	}
	return shortest, longest
}

// assigned gives the plan that a value names, or nil after a complaint.
func (r *reader) assigned(f field, p *Policy) *Plan {
	t, ok := r.text(f, "write the name of a plan")
	if !ok {
		return nil
	}
	plan := p.plan(t.value)
	if plan == nil {
		var known []string
		for _, plan := range p.Plans {
			known = append(known, plan.Name)
		}
		_, remedy := suggest(t.value, known)
		remedy = strings.Replace(remedy, "the fields here are", "the plans are", 1)
		if len(known) == 0 {
			remedy = `write it under "plans:"`
		}
		r.add(t.at, fmt.Sprintf("there is no plan %.40q", t.value), remedy)
	}
	return plan
}

// plan gives the plan of a name, or nil.
func (p *Policy) plan(name string) *Plan {
	i := slices.IndexFunc(p.Plans, func(plan Plan) bool { return plan.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Plans[i]
}

// mapping reads a mapping whose names are the user's. It gives none after a complaint.
func (r *reader) mapping(f field, remedy string) []*ast.MappingValueNode {
	if f.value == nil {
		return nil
	}
	m, ok := f.value.(*ast.MappingNode)
	switch {
	case !ok:
		r.add(r.blame(f), fmt.Sprintf("%s is %s, not a mapping", f.name, describe(f.value)), remedy)
		return nil
	case len(m.Values) == 0:
		r.add(nodePlace(m), fmt.Sprintf("%s is an empty mapping", f.name), remedy)
	}
	return m.Values
}

// name reads the name of an entry of a mapping, which is a text of up to most bytes
// without a line's end.
func (r *reader) name(v *ast.MappingValueNode, what string, most int) (scalar, bool) {
	n := v.Key.(ast.Node)
	if s, ok := n.(*ast.StringNode); ok {
		t, ok := r.scalar(s)
		switch {
		case !ok:
			return t, false
		case t.value == "":
			r.add(t.at, what+" has an empty name", "give it one")
			return t, false
		case len(t.value) > most:
			r.add(t.at, fmt.Sprintf("the name of %s has %d bytes, at most %d are allowed", what, len(t.value), most), "shorten it")
			return t, false
		}
		return t, true
	}
	r.add(nodePlace(n), fmt.Sprintf("%s is %s, not a text", what, describe(n)), "put it in quotes")
	return scalar{}, false
}
