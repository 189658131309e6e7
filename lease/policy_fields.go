package lease

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// field is a value of the file that has a name. One without a value has been
// complained of already.
type field struct {
	name  string
	at    place
	value ast.Node
}

// fields reads a mapping in which only the known fields may stand, each once.
// It gives nil where there is no mapping.
func (r *reader) fields(n ast.Node, what string, known []string) map[string]field {
	mapping, ok := n.(*ast.MappingNode)
	if !ok {
		r.add(nodePlace(n), fmt.Sprintf("%s is %s", what, describe(n)),
			fmt.Sprintf("write its fields, each on a line: %s", strings.Join(known, ", ")))
		return nil
	}
	fields := map[string]field{}
	for _, v := range mapping.Values {
		f := field{v.Key.GetToken().Value, nodePlace(v.Key), v.Value}
		if !slices.Contains(known, f.name) {
			meant, remedy := suggest(f.name, known)
			problem := fmt.Sprintf("unknown field %.40q", f.name)
			if p, more := unnamed(f.name); p != "" {
				meant, problem, remedy = strings.Fields(f.name)[0], p, more
			}
			r.add(f.at, problem, remedy)
			// What was meant is not missing as well.
			f = field{name: meant}
		} else if before := fields[f.name]; before.value != nil {
			r.add(f.at, fmt.Sprintf("the field %s stands on line %d already", f.name, before.at.line), "keep one of the two")
			continue
		}
		if fields[f.name].value == nil {
			fields[f.name] = f
		}
	}
	return fields
}

// suggest gives the known field nearest to name, if it is near, and what to do.
func suggest(name string, known []string) (meant, remedy string) {
	remedy = "the fields here are " + strings.Join(known, ", ")
	best := 3 // edits; more make another word
	for _, k := range known {
		if d := edits(name, k); d < min(best, len(k)-1) {
			meant, best = k, d
			remedy = "write " + k
		}
	}
	return meant, remedy
}

// edits counts the letters to insert, remove and replace to make b of a.
func edits(a, b string) int {
	if len(a) > 2*len(b)+2 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// items reads a list that is not empty.
func (r *reader) items(f field, remedy string) []ast.Node {
	if f.value == nil {
		return nil
	}
	list, ok := f.value.(*ast.SequenceNode)
	switch {
	case !ok:
		r.add(r.blame(f), fmt.Sprintf("%s is %s, not a list", f.name, describe(f.value)), remedy)
		return nil
	case len(list.Values) == 0:
		r.add(nodePlace(list), fmt.Sprintf("%s is an empty list", f.name), remedy)
	}
	return list.Values
}

// text reads a text. It gives false after a complaint.
func (r *reader) text(f field, remedy string) (scalar, bool) {
	if f.value == nil {
		return scalar{}, false
	}
	if f.value.Type() != ast.StringType {
		r.add(r.blame(f), fmt.Sprintf("%s is %s, not a text", f.name, describe(f.value)), remedy)
		return scalar{}, false
	}
	return r.scalar(f.value)
}

// blame gives the place of a field's value, or of its name if it has none.
func (r *reader) blame(f field) place {
	if f.value.Type() == ast.NullType {
		return f.at
	}
	return nodePlace(f.value)
}

// describe says what a node is, in the words of the file.
func describe(n ast.Node) string {
	written := fmt.Sprintf("%.40s", n.GetToken().Value)
	switch n.Type() {
	case ast.NullType:
		return "empty"
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "the number " + written
	case ast.BoolType:
		return "the truth value " + written
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.SequenceType:
		return "a list"
	}
	return "the text " + fmt.Sprintf("%q", written)
}

// nodePlace is where a node begins. A mapping that is not in braces names its
// first colon as its token, and begins with its first field.
func nodePlace(n ast.Node) place {
	var first *token.Token
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		first = m.Values[0].Key.GetToken()
	} else {
		first = n.GetToken()
	}
	return tokenPlace(first)
}
