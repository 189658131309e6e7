package sim_test

import (
	"flag"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/integration/sim"
	"ration/lease"
)

var (
	seeds = flag.Int("seeds", 80, "how many worlds to play")
	seed  = flag.Uint64("seed", 0, "play this one only, and say more")
	first = flag.Uint64("first", 0, "play this one of them before the others")
)

// TestSimulation plays many worlds. No limit is ever exceeded; when the faults
// stop, use is high; at the end everything is free, every caller has an answer
// and the books balance. Every fault and every rare branch has happened.
func TestSimulation(t *testing.T) {
	if *seed != 0 {
		v, broke := world(*seed)
		require.Empty(t, broke)
		t.Logf("seed %d: %s: %d spends, use %.3f\nfaults %v\nledger %+v\npools %+v", v.Seed, v.Contract, v.Spends, v.Use, v.Faults, v.Ledger, v.Pools)
		check(t, v)
		return
	}
	counts := map[string]int{}
	for _, bound := range []error{lease.ErrTooManyKeys, lease.ErrTooManyHolders, lease.ErrTooManyLeases, lease.ErrTooManyWaiters, lease.ErrLineFull, lease.ErrShed} {
		counts["ledger: Refused "+lease.Code(bound)] = 0
	}
	uses := map[string][]float64{}
	spends := 0
	for v, broke := range play(*seeds) {
		if !t.Run(fmt.Sprintf("seed %d", v.Seed), func(t *testing.T) {
			require.Empty(t, broke, replay(v.Seed))
			check(t, v)
		}) {
			if failFast() {
				return
			}
			continue
		}
		spends += v.Spends
		if !v.Contract.Scarce && !v.Apart {
			uses[v.Contract.String()] = append(uses[v.Contract.String()], v.Use)
		}
		for name, n := range v.Faults {
			counts["fault: "+name] += n
		}
		count(counts, "ledger: ", v.Ledger)
		count(counts, "pool: ", v.Pools)
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-28s %9d", name, counts[name])
	}
	for _, rules := range slices.Sorted(maps.Keys(uses)) {
		u := uses[rules]
		t.Logf("use of %-30s least %.3f of %d worlds", rules, slices.Min(u), len(u))
	}
	t.Logf("%d worlds, %d spends, %d faults of %d kinds", *seeds, spends, sum(counts, "fault: "), kinds(counts, "fault: "))
	for name, n := range counts {
		require.NotZero(t, n, "%s never happened in %d worlds", name, *seeds)
	}
}

// TestAPolicyIsFollowedInEachWay, long before all worlds have been played: limits in shadow count
// what they would refuse, slots beyond a lowered limit are recalled, and who waits is refused
// what another policy can never grant.
func TestAPolicyIsFollowedInEachWay(t *testing.T) {
	var would, over, never int64
	for v, broke := range play(80) {
		require.Empty(t, broke, replay(v.Seed))
		would, over, never = would+v.Ledger.WouldRefuse, over+v.Ledger.RecalledOver, never+v.Ledger.WaitersRefused
		if would > 0 && over > 0 && never > 0 {
			return
		}
	}
	t.Fatalf("%d would have been refused, %d slots were recalled, %d waiters were refused", would, over, never)
}

func check(t *testing.T, v sim.Verdict) {
	t.Helper()
	again := replay(v.Seed)
	few := func(n int) int { return min(n, 5) } // of a thousand more say no more
	require.Empty(t, v.Violations[:few(len(v.Violations))], "%d violations of %s\n%s", len(v.Violations), v.Contract, again)
	require.Empty(t, v.Stranded[:few(len(v.Stranded))], "%d stranded under %s\n%s", len(v.Stranded), v.Contract, again)
	if v.Contract.Scarce || v.Apart {
		return
	}
	require.GreaterOrEqual(t, v.Use, max(0.95, v.Contract.Least), "use of %s\n%s", v.Contract, again)
}

func replay(seed uint64) string {
	return fmt.Sprintf("replay: go test ./integration/sim -run TestSimulation -seed %d", seed)
}

// failFast says whether go test was told to stop at the first failure.
func failFast() bool { return flag.Lookup("test.failfast").Value.String() == "true" }

// order is that of the first n worlds: by number, but for the one to play first.
func order(n int) []uint64 {
	worlds := make([]uint64, n)
	for i := range worlds {
		worlds[i] = uint64(i + 1)
	}
	if i := slices.Index(worlds, *first); i >= 0 {
		worlds = slices.Insert(slices.Delete(worlds, i, i+1), 0, *first)
	}
	return worlds
}

// play plays the first n worlds, several at once, and gives them in order. It
// begins no more of them than are looked at, and a few ahead.
func play(n int) iter.Seq2[sim.Verdict, string] {
	type played struct {
		verdict sim.Verdict
		broke   string
	}
	return func(yield func(sim.Verdict, string) bool) {
		defer debug.SetGCPercent(debug.SetGCPercent(400)) // worlds make much garbage, and live on little
		var wg sync.WaitGroup
		defer wg.Wait()
		ahead := make(chan chan played, runtime.GOMAXPROCS(0))
		stop := make(chan struct{})
		defer close(stop)
		wg.Go(func() {
			defer close(ahead)
			for _, seed := range order(n) {
				one := make(chan played, 1)
				select {
				case ahead <- one:
				case <-stop:
					return
				}
				wg.Go(func() {
					v, broke := world(seed)
					one <- played{v, broke}
				})
			}
		})
		for one := range ahead {
			if p := <-one; !yield(p.verdict, p.broke) {
				return
			}
		}
	}
}

// world plays one. Where a check of the product's own panics in it, it says so.
func world(seed uint64) (v sim.Verdict, broke string) {
	defer func() {
		if x := recover(); x != nil {
			v.Seed, broke = seed, fmt.Sprintf("panic: %v\n%s", x, debug.Stack())
		}
	}()
	return sim.Run(seed), ""
}

// count adds the fields of a struct of counts, also those that are zero.
func count(counts map[string]int, prefix string, of any) {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		name := prefix + v.Type().Field(i).Name
		switch f := v.Field(i); f.Kind() {
		case reflect.Int64:
			counts[name] += int(f.Int())
		case reflect.Map:
			for _, key := range f.MapKeys() {
				counts[name+" "+key.String()] += int(f.MapIndex(key).Int())
			}
		}
	}
}

func sum(counts map[string]int, prefix string) (n int) {
	for name, c := range counts {
		if len(name) > len(prefix) && name[:len(prefix)] == prefix {
			n += c
		}
	}
	return n
}

func kinds(counts map[string]int, prefix string) (n int) {
	for name := range counts {
		if len(name) > len(prefix) && name[:len(prefix)] == prefix {
			n++
		}
	}
	return n
}
