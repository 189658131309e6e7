package worker

import (
	"slices"
	"strings"

	"ration/lease"
)

// keySet is keys that are named together: in order, each once, and divided by what no
// key has in it, two slashes. One key is the key itself.
type keySet string

const divider = "//"

func newKeySet(key lease.Key, more []lease.Key) keySet {
	if len(more) == 0 {
		return keySet(key)
	}
	all := append([]lease.Key{key}, more...)
	slices.Sort(all)
	return joined(slices.Compact(all))
}

func joined(keys []lease.Key) keySet {
	var b strings.Builder
	for i, k := range keys {
		if i > 0 {
			b.WriteString(divider)
		}
		b.WriteString(string(k))
	}
	return keySet(b.String())
}

// recalled gives the keys that a recall is of.
func recalled(r lease.Recall) keySet {
	if len(r.More) == 0 {
		return keySet(r.Key)
	}
	return joined(append([]lease.Key{r.Key}, r.More...))
}

func (s keySet) list() []lease.Key {
	var keys []lease.Key
	for k := range strings.SplitSeq(string(s), divider) {
		keys = append(keys, lease.Key(k))
	}
	return keys
}

// tenant is that of all of them.
func (s keySet) tenant() string { return lease.Key(s).Tenant() }
