package table

import (
	"hash/maphash"
	"iter"
)

// parts is into how many a table is divided, each grown and shrunk by itself.
const parts = 256

// Table is a set of values, one for each key. New makes one. It is not safe for
// concurrent use.
type Table[K comparable, V any] struct {
	key   func(V) K
	seed  maphash.Seed // strangers cannot choose keys that meet
	parts [parts]part[V]
	n     int
}

// part is an open-addressed table with linear probing. A tag is 0 where there is
// no value, and else the piece of the hash of its key that says where it belongs:
// hardly ever is a value looked at that is not meant, and none is when values move.
type part[V any] struct {
	tags   []uint32
	values []V
	n      int
}

// New gives an empty table. key gives the key of a value, always the same.
func New[K comparable, V any](key func(V) K) *Table[K, V] {
	return &Table[K, V]{key: key, seed: maphash.MakeSeed()}
}

// Len is how many values there are.
func (t *Table[K, V]) Len() int { return t.n }

// Get gives the value of a key.
func (t *Table[K, V]) Get(key K) (v V, ok bool) {
	h := maphash.Comparable(t.seed, key)
	p := &t.parts[h%parts]
	if at, ok := t.find(p, h, key); ok {
		return p.values[at], true
	}
	return v, false
}

// All gives every value, in no order. The table must not change meanwhile.
func (t *Table[K, V]) All() iter.Seq[V] {
	return func(yield func(V) bool) {
		for i := range t.parts {
			for at, tag := range t.parts[i].tags {
				if tag != 0 && !yield(t.parts[i].values[at]) {
					return
				}
			}
		}
	}
}

// Put adds a value, in the place of the one that has its key if there is one.
func (t *Table[K, V]) Put(v V) {
	if at := t.enter(v); at != nil {
		*at = v
	}
}

// Add adds a value, or is false if there is one that has its key.
func (t *Table[K, V]) Add(v V) bool { return t.enter(v) == nil }

// enter adds a value, or gives where there is one that has its key.
func (t *Table[K, V]) enter(v V) *V {
	key := t.key(v)
	h := maphash.Comparable(t.seed, key)
	p := &t.parts[h%parts]
	if at, ok := t.find(p, h, key); ok {
		return &p.values[at]
	}
	if 5*(p.n+1) > 4*len(p.tags) {
		t.resize(p, max(4, len(p.tags)+len(p.tags)/2))
	}
	p.add(tag(h), v)
	t.n++
	return nil
}

// Delete takes out the value of a key, if there is one.
func (t *Table[K, V]) Delete(key K) {
	h := maphash.Comparable(t.seed, key)
	p := &t.parts[h%parts]
	at, ok := t.find(p, h, key)
	if !ok {
		return
	}
	t.n--
	p.n--
	// What stands behind moves up, if that brings it no further than to where it
	// belongs: so a value is always found before the first gap.
	size := len(p.tags)
	for next := (at + 1) % size; p.tags[next] != 0; next = (next + 1) % size {
		belongs := home(p.tags[next], size)
		if (next-belongs+size)%size >= (next-at+size)%size {
			p.tags[at], p.values[at] = p.tags[next], p.values[next]
			at = next
		}
	}
	var none V
	p.tags[at], p.values[at] = 0, none
	if p.n < size/4 {
		t.resize(p, p.n+p.n/2)
	}
}

// find gives the place of a key in its part.
func (t *Table[K, V]) find(p *part[V], h uint64, key K) (at int, ok bool) {
	size := len(p.tags)
	if size == 0 {
		return 0, false
	}
	want := tag(h)
	for at = home(want, size); p.tags[at] != 0; {
		if p.tags[at] == want && t.key(p.values[at]) == key {
			return at, true
		}
		if at++; at == size {
			at = 0
		}
	}
	return 0, false
}

// resize gives a part room for size values; at least one place stays empty.
func (t *Table[K, V]) resize(p *part[V], size int) {
	old := *p
	*p = part[V]{}
	if size > 0 {
		p.tags, p.values = make([]uint32, size+1), make([]V, size+1)
	}
	for i, tag := range old.tags {
		if tag != 0 {
			p.add(tag, old.values[i])
		}
	}
}

// add puts a value that is not there yet into the first gap from where it belongs.
func (p *part[V]) add(tag uint32, v V) {
	at := home(tag, len(p.tags))
	for p.tags[at] != 0 {
		if at++; at == len(p.tags) {
			at = 0
		}
	}
	p.tags[at], p.values[at] = tag, v
	p.n++
}

// home is where a value with that tag belongs, from 0 to size-1.
func home(tag uint32, size int) int { return int(uint64(tag) * uint64(size) >> 32) }

// tag is of other bits of the hash than the part, and never 0.
func tag(h uint64) uint32 { return max(1, uint32(h>>32)) }
