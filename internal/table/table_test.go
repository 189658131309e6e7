package table_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/internal/table"
)

// TestTableIsAMap plays random steps on a table and on a map of Go, growing and
// shrinking by turns.
func TestTableIsAMap(t *testing.T) {
	const steps, keys = 400_000, 20_000
	random := rand.New(rand.NewPCG(1, 2))
	got, want := table.New(keyOf), map[string]*entry{}
	for step := range steps {
		key := strconv.Itoa(random.IntN(keys))
		shrinks := step/50_000%2 == 1
		switch n := random.IntN(10); {
		case n < 2:
			e, ok := got.Get(key)
			require.Equal(t, want[key], e, "step %d: %s", step, key)
			require.Equal(t, want[key] != nil, ok)
		case n == 9:
			e := &entry{key, step}
			require.Equal(t, want[key] == nil, got.Add(e), "step %d: %s", step, key)
			if want[key] == nil {
				want[key] = e
			}
		case n < 4 || shrinks:
			got.Delete(key)
			delete(want, key)
		default:
			e := &entry{key, step}
			got.Put(e)
			want[key] = e
		}
		require.Equal(t, len(want), got.Len(), "step %d", step)
	}
	all := 0
	for e := range got.All() {
		require.Same(t, want[e.key], e)
		all++
	}
	require.Equal(t, len(want), all)
	for key, e := range want {
		found, ok := got.Get(key)
		require.True(t, ok, key)
		require.Same(t, e, found)
	}
}

// TestRoomIsGivenBack: a table that had many and has few is as small as one that
// never had more, and many take little more than themselves.
func TestRoomIsGivenBack(t *testing.T) {
	const many = 100_000
	entries := make([]*entry, many)
	for i := range entries {
		entries[i] = &entry{key: strconv.Itoa(i)}
	}
	before := heap()
	tab := table.New(keyOf)
	for _, e := range entries {
		tab.Put(e)
	}
	full := heap() - before
	t.Logf("%.1f bytes for each of %d values of 8", float64(full)/many, many)
	require.Less(t, full, int64(20*many))
	for _, e := range entries[10:] {
		tab.Delete(e.key)
	}
	require.Less(t, heap()-before, int64(64<<10))
	require.Equal(t, 10, tab.Len())
	runtime.KeepAlive(entries)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{100, 1_000_000} {
		keys := make([]string, n)
		tab, m := table.New(keyOf), map[string]*entry{}
		for i := range keys {
			keys[i] = "tenant/" + strconv.Itoa(i)
			e := &entry{key: keys[i]}
			tab.Put(e)
			m[keys[i]] = e
		}
		b.Run(fmt.Sprintf("table of %d", n), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				tab.Get(keys[random.IntN(n)])
			}
		})
		b.Run(fmt.Sprintf("map of %d", n), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				_ = m[keys[random.IntN(n)]]
			}
		})
	}
}
