package sim_test

import (
	"flag"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/integration/sim"
)

var (
	seeds = flag.Int("seeds", 40, "how many worlds to play")
	seed  = flag.Uint64("seed", 0, "play this one only, and say more")
)

// TestSimulation plays many worlds. No limit is ever exceeded; when the faults
// stop, use is high; at the end everything is free, every caller has an answer
// and the books balance. Every fault and every rare branch has happened.
func TestSimulation(t *testing.T) {
	if *seed != 0 {
		v := sim.Run(*seed)
		t.Logf("seed %d: %s: %d spends, use %.3f\nfaults %v\nledger %+v\npools %+v", v.Seed, v.Contract.Rules, v.Spends, v.Use, v.Faults, v.Ledger, v.Pools)
		check(t, v)
		return
	}
	counts := map[string]int{}
	uses := map[string][]float64{}
	spends := 0
	for _, v := range play(*seeds) {
		if !t.Run(fmt.Sprintf("seed %d", v.Seed), func(t *testing.T) { check(t, v) }) {
			continue
		}
		spends += v.Spends
		uses[v.Contract.Rules] = append(uses[v.Contract.Rules], v.Use)
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

func check(t *testing.T, v sim.Verdict) {
	t.Helper()
	again := fmt.Sprintf("replay: go test ./integration/sim -run TestSimulation -seed %d", v.Seed)
	require.Empty(t, v.Violations, "%s\n%s", v.Contract.Rules, again)
	require.Empty(t, v.Stranded, "%s\n%s", v.Contract.Rules, again)
	require.GreaterOrEqual(t, v.Use, 0.95, "use of %s\n%s", v.Contract.Rules, again)
}

func play(n int) []sim.Verdict {
	verdicts := make([]sim.Verdict, n)
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				verdicts[i] = sim.Run(uint64(i + 1))
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return verdicts
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
