package oracle

import (
	"cmp"
	"slices"
	"strings"
)

// Spend is one line of a log: that so many tokens of a key were spent at an
// instant, and when the call that spent them had ended.
type Spend struct {
	Key string
	// More are the other keys that it was of, if it was of several.
	More []string
	At   int64 // Unix nanoseconds
	Cost int64 // tokens
	// Units is what it cost of other units, by name; nil if of none.
	Units map[string]int64
	Done  int64 // Unix nanoseconds; 0 if the end is not known: it counts as under way for good
}

// Sort orders spends by their instants, and leaves the order of equal ones.
func Sort(spends []Spend) {
	slices.SortStableFunc(spends, func(a, b Spend) int { return cmp.Compare(a.At, b.At) })
}

// Under gives the spends of key and of every key below it, as one limit on
// "acme" counts "acme" and "acme/search" but not "acmes". With "" it gives all. One of
// several keys is there once.
func Under(spends []Spend, key string) []Spend {
	if key == "" {
		return spends
	}
	var under []Spend
	for _, s := range spends {
		if below(s.Key, key) || slices.ContainsFunc(s.More, func(more string) bool { return below(more, key) }) {
			under = append(under, s)
		}
	}
	return under
}

func below(key, prefix string) bool {
	rest, ok := strings.CutPrefix(key, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// ordered gives spends in order, copied only where it has to be.
func ordered(spends []Spend) []Spend {
	byInstant := func(a, b Spend) int { return cmp.Compare(a.At, b.At) }
	if slices.IsSortedFunc(spends, byInstant) {
		return spends
	}
	spends = slices.Clone(spends)
	Sort(spends)
	return spends
}
