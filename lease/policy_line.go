package lease

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"ration/algo"
)

const (
	// defaultLower is the percentage that lower classes keep where a policy says nothing.
	defaultLower = 5
	// maxLower is the largest that may be kept for them.
	maxLower = 90
	// maxWaiting is the largest bound of a class.
	maxWaiting = 1_000_000
	// maxShed is the longest that one may wait before it is shed, if there is a bound.
	maxShed = 24 * time.Hour
	// maxClassLen is the longest name of a class, in bytes.
	maxClassLen = algo.MaxUnitLen
	// maxClasses is how many classes all lines of a policy may name together.
	maxClasses = 32

	lineRemedy = "write how many may wait, such as line: 20, or {premium: 500, standard: 100, lower: 5%}"
)

// WaitingLine says who may wait at a prefix. The zero value is one bound for all, that
// of the coordinator.
type WaitingLine struct {
	// Classes are the classes of the line, first drained first, or one without a name for
	// everybody.
	Classes []LineClass
	// Lower is the percentage of what is granted that is kept for lower classes while they
	// wait, 0 to 90; 0 is strict. It means nothing in a line of one class.
	Lower int64
	// ShedShare and ShedAfter bound the waiting of all classes together, the lower ones
	// first: by the percentage of all their bounds that may wait, 1 to 100, or by how long
	// one may. 0 is no bound; one of them is 0.
	ShedShare int64
	ShedAfter time.Duration
}

// LineClass is a class of a line, and how many requests of it may wait, 0 to a million.
type LineClass struct {
	Name  string
	Bound int
}

// ClassFault says what is wrong with the name of a class; empty if nothing is.
func ClassFault(name string) string { return algo.NameFault("class", name) }

// ClassRemedy says how a class is named.
const ClassRemedy = "write 1 to 32 of a-z, 0-9, _ and -, beginning with a letter"

// String is the line as a policy has it.
func (w *WaitingLine) String() string {
	if len(w.Classes) == 1 && w.Classes[0].Name == "" {
		return strconv.Itoa(w.Classes[0].Bound)
	}
	var parts []string
	for _, c := range w.Classes {
		parts = append(parts, fmt.Sprintf("%s: %d", c.Name, c.Bound))
	}
	if len(w.Classes) > 1 {
		parts = append(parts, fmt.Sprintf("lower: %d%%", w.Lower))
	}
	if w.ShedShare > 0 {
		parts = append(parts, fmt.Sprintf("shed: %d%%", w.ShedShare))
	}
	if w.ShedAfter > 0 {
		parts = append(parts, "shed: "+spell(w.ShedAfter))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// waitingLine reads the line of a limit, and notes in which order it has the classes.
func (r *reader) waitingLine(f field) WaitingLine {
	if f.value == nil {
		return WaitingLine{}
	}
	if f.value.Type() == ast.IntegerType {
		n, _ := r.bound(f)
		return WaitingLine{Classes: []LineClass{{Bound: n}}}
	}
	if _, ok := f.value.(*ast.MappingNode); !ok {
		r.add(r.blame(f), fmt.Sprintf("line is %s, neither a number nor a mapping", describe(f.value)), lineRemedy)
		return WaitingLine{}
	}
	line, named := WaitingLine{Lower: defaultLower}, 0
	var places []place
	written := map[string]place{}
	for _, v := range r.mapping(f, lineRemedy) {
		name, ok := r.name(v, "the class", maxClassLen)
		if !ok {
			continue
		}
		if before, twice := written[name.value]; twice {
			r.add(name.at, fmt.Sprintf("%s stands in this line on line %d already", name.value, before.line), "keep one of the two")
			continue
		}
		written[name.value] = name.at
		value := field{name: name.value, at: name.at, value: v.Value}
		switch name.value {
		case "lower":
			line.Lower = r.lower(value)
			continue
		case "shed":
			line.ShedShare, line.ShedAfter = r.shed(value)
			continue
		}
		named++
		if fault := ClassFault(name.value); fault != "" {
			r.add(name.at, fault, ClassRemedy)
			continue
		}
		if n, ok := r.bound(value); ok {
			line.Classes, places = append(line.Classes, LineClass{name.value, n}), append(places, name.at)
		}
	}
	switch lower, kept := written["lower"]; {
	case named == 0 && len(written) > 0:
		r.add(nodePlace(f.value), "the line has no class", lineRemedy)
	case named == 1 && kept:
		r.add(lower, "lower keeps a share for lower classes, and the line has one class", "name a lower one behind it, or leave lower out")
	}
	r.classes.note(r, line.Classes, places)
	return line
}

// bound reads how many may wait.
func (r *reader) bound(f field) (int, bool) {
	if f.value.Type() != ast.IntegerType {
		r.add(r.blame(f), fmt.Sprintf("%s is %s, not a number", f.name, describe(f.value)), lineRemedy)
		return 0, false
	}
	n, err := strconv.Atoi(f.value.GetToken().Value)
	if err != nil || n < 0 || n > maxWaiting {
		r.add(nodePlace(f.value), fmt.Sprintf("%s is %.40s, not a whole number from 0 to %d", f.name, f.value.GetToken().Value, maxWaiting),
			"write how many requests may wait; 0 lets nobody wait")
		return 0, false
	}
	return n, true
}

// lower reads a percentage.
func (r *reader) lower(f field) int64 {
	const remedy = "write the percentage that is kept for lower classes, such as lower: 5%, or 0 for none"
	text := f.value.GetToken().Value
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	switch {
	case f.value.Type() == ast.NullType, err != nil, !percent && n != 0:
		r.add(r.blame(f), fmt.Sprintf("lower is %s, not a percentage", describe(f.value)), remedy)
	case n < 0 || n > maxLower:
		r.add(nodePlace(f.value), fmt.Sprintf("lower is %.40s, not from 0%% to %d%%", text, maxLower), remedy)
	default:
		return int64(n)
	}
	return defaultLower
}

// shed reads a percentage or a time.
func (r *reader) shed(f field) (share int64, after time.Duration) {
	const remedy = "write the share of the line that may wait, such as shed: 80%, or how long one may, such as shed: 2s"
	text := f.value.GetToken().Value
	if digits, percent := strings.CutSuffix(text, "%"); percent {
		if n, err := strconv.Atoi(digits); err == nil && n >= 1 && n <= 100 {
			return int64(n), 0
		}
		r.add(nodePlace(f.value), fmt.Sprintf("shed is %.40s, not from 1%% to 100%%", text), remedy)
		return 0, 0
	}
	t, ok := r.text(f, remedy)
	if !ok {
		return 0, 0
	}
	d, err := time.ParseDuration(t.value)
	switch {
	case err != nil:
		r.add(t.at, fmt.Sprintf("shed is %.40q, which is no share and no time", t.value), remedy)
	case d < time.Millisecond || d > maxShed:
		r.add(t.at, fmt.Sprintf("shed is %s, not from 1ms to 24h", t.value), remedy)
	default:
		return 0, d
	}
	return 0, 0
}

// ranking is the order of all classes as the lines have it. A request stands in many
// lines at once, and goes before another in all of them or in none: so no two lines may
// have two classes the other way round, be it by a third.
type ranking struct {
	names  []string                  // in the order in which they are first written
	before map[string]map[string]int // what each stands before, and the line of the file that says so
}

// note takes up the order of one line.
func (k *ranking) note(r *reader, classes []LineClass, places []place) {
	if k.before == nil {
		k.before = map[string]map[string]int{}
	}
	for i, c := range classes {
		if _, known := k.before[c.Name]; !known {
			if len(k.names) == maxClasses {
				r.add(places[i], fmt.Sprintf("there are more than %d classes", maxClasses), "use those there are for more than one limit")
				return
			}
			k.before[c.Name] = map[string]int{}
			k.names = append(k.names, c.Name)
		}
		for _, first := range classes[:i] {
			if line, other := k.before[c.Name][first.Name]; other {
				r.add(places[i], fmt.Sprintf("%s stands behind %s here, and before it by the line on line %d", c.Name, first.Name, line),
					"give the classes one order in all lines")
				return
			}
			k.put(first.Name, c.Name, places[i].line)
		}
	}
}

// put notes that a stands before b, and with it whatever stands before a.
func (k *ranking) put(a, b string, line int) {
	for _, x := range k.names {
		if _, ok := k.before[x][a]; x != a && !ok {
			continue
		}
		for _, y := range k.names {
			if _, ok := k.before[b][y]; y != b && !ok {
				continue
			}
			if _, ok := k.before[x][y]; !ok {
				k.before[x][y] = line
			}
		}
	}
}

// order gives all classes, first drained first; where no line says which of two that is,
// the one that is written first.
func (k *ranking) order() (all []string) {
	rest := slices.Clone(k.names)
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(c string) bool {
			return !slices.ContainsFunc(rest, func(other string) bool { _, ok := k.before[other][c]; return ok })
		})
		all = append(all, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return all
}

// class reads the class of a plan, which some line has to have.
func (r *reader) class(f field) string {
	t, ok := r.text(f, "write the name of a class, such as class: premium")
	if !ok {
		return ""
	}
	if known := r.classes.names; !slices.Contains(known, t.value) {
		_, remedy := suggest(t.value, known)
		remedy = strings.Replace(remedy, "the fields here are", "the classes are", 1)
		if len(known) == 0 {
			remedy = "name it in the line of a limit, such as line: {premium: 500, standard: 100}"
		}
		r.add(t.at, fmt.Sprintf("no line has the class %.40q", t.value), remedy)
		return ""
	}
	return t.value
}

// Rank is the place of a class among all of the policy, 0 for the first drained, and
// whether there is such a class.
func (p *Policy) Rank(class string) (int, bool) {
	i := slices.Index(p.Classes, class)
	return i, i >= 0
}
