package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ration/integration/oracle"

	"github.com/stretchr/testify/require"
)

const second, ms = int64(1e9), int64(1e6)

// at makes spends of one token each, at these milliseconds.
func at(millis ...int64) []oracle.Spend {
	var spends []oracle.Spend
	for _, m := range millis {
		spends = append(spends, oracle.Spend{Key: "k", At: m * ms, Cost: 1})
	}
	return spends
}

// many makes spends from pairs of seconds and costs.
func many(pairs ...int64) []oracle.Spend {
	var spends []oracle.Spend
	for i := 0; i < len(pairs); i += 2 {
		spends = append(spends, oracle.Spend{Key: "k", At: pairs[i] * second, Cost: pairs[i+1]})
	}
	return spends
}

// calls makes calls from pairs of start and end, in milliseconds.
func calls(pairs ...int64) []oracle.Spend {
	var spends []oracle.Spend
	for i := 0; i < len(pairs); i += 2 {
		spends = append(spends, oracle.Spend{Key: "k", At: pairs[i] * ms, Cost: 1, Done: pairs[i+1] * ms})
	}
	return spends
}

func TestHandMadeCases(t *testing.T) {
	for _, c := range []struct {
		what   string
		rule   string
		spends []oracle.Spend
		worst  int64
		where  int64 // ms
		breaks int
	}{
		{"nothing spent", "2/1s", nil, 0, 0, 0},
		{"the limit itself is allowed", "3/1s", at(100, 100, 999), 3, 999, 0},
		{"one more is not", "3/1s", at(100, 100, 999, 1099), 4, 1099, 1},
		{"a spend exactly one window old is out", "3/1s", at(100, 100, 999, 1100), 3, 999, 0},
		{"the window straddles the clock's second", "3/1s", at(900, 950, 1000, 1050), 4, 1050, 1},
		{"the order of the log does not matter", "3/1s", at(1050, 900, 1000, 950), 4, 1050, 1},
		{"spends at one instant are one place", "3/1s", at(5, 5, 5, 5, 5), 5, 5, 1},
		{"each place counts", "1/1s", at(0, 1, 2), 3, 2, 2},
		{"limit 0 allows nothing", "0/1s", at(1), 1, 1, 1},
		{"before the epoch", "1/1s", at(-500, -400), 2, -400, 1},
		{"fixed windows begin at the clock", "3/1s fixed", at(900, 950, 999, 1000, 1050, 1999), 3, 999, 0},
		{"and hold the limit", "3/1s fixed", at(1000, 1001, 1002, 1999), 4, 1999, 1},
		{"also before the epoch", "1/1s fixed", at(-1, 0), 1, -1, 0},
		{"a bucket gives its burst", "10/1s bucket burst=3", at(0, 0, 0, 100, 200, 300), 3, 0, 0},
		{"but no more", "10/1s bucket burst=3", at(0, 0, 0, 99), 4, 99, 1},
		{"nor does it save beyond it", "10/1s bucket burst=3", at(0, 5000, 5000, 5000, 5000), 4, 5000, 1},
		{"an estimate counts the part of the period before that the window reaches", "109/60s counter", many(59, 80, 61, 30), 109, 61000, 0},
		{"80, 30 and 40 % give 78, and one more", "78/60s counter", many(59, 80, 84, 31), 80, 59000, 2},
		{"100 at :59 let exactly one through at 1:01", "100/60s counter", many(59, 100, 61, 1), 100, 59000, 0},
		{"and not two", "100/60s counter", many(59, 100, 61, 2), 101, 61000, 1},
		{"it is rounded up", "3/1s counter", at(0, 0, 0, 1001), 4, 1001, 1},
		{"before the epoch, too", "3/1s counter", at(-1000, -1000, -1000, 334), 3, -1000, 0},
		{"and forgets what is two periods old", "1/1s counter", at(0, 2000, 4000), 1, 0, 0},
		{"a call each gap is what a pace allows", "1/100ms pace", at(0, 100, 200, 300), 1, 0, 0},
		{"but none sooner", "10/1s pace", at(0, 100, 199, 300), 2, 199, 1},
		{"nor two together", "10/1s pace", at(7, 7), 2, 7, 1},
		{"nor does it save up", "10/1s pace", at(0, 5000, 5001), 2, 5001, 1},
		{"a gap that does not divide is not rounded down", "3/1s pace", at(0, 333, 667), 2, 333, 1},
		{"also before the epoch, for a pace", "1/1s pace", at(-500, 499), 2, 499, 1},
		{"pace 0 allows nothing", "0/1s pace", at(1), 1, 1, 1},
		{"a call may start as another ends", "1 concurrent", calls(0, 10, 10, 20), 1, 0, 0},
		{"but not before", "1 concurrent", calls(0, 10, 9, 20), 2, 9, 1},
		{"a call without an end is under way for good", "1 concurrent", at(0, 1000000), 2, 1000000, 1},
		{"ends in another order than starts", "2 concurrent", calls(0, 50, 10, 20, 20, 30, 30, 60), 2, 10, 0},
	} {
		r, err := oracle.ParseRule(c.rule)
		require.NoError(t, err, c.what)
		worst, where := oracle.Worst(r, c.spends)
		require.Equal(t, c.worst, worst, c.what)
		require.Equal(t, c.where*ms, where, c.what)
		require.Len(t, oracle.Violations(c.spends, []oracle.Rule{r}), c.breaks, c.what)
	}
}

func TestCostsCountInFull(t *testing.T) {
	spends := []oracle.Spend{{At: 0, Cost: 7}, {At: second / 2, Cost: 4}}
	for _, text := range []string{"10/1s", "10/1s fixed", "2/1s bucket burst=9"} {
		found := oracle.Violations(spends, oracle.MustRules(text))
		require.Len(t, found, 1, text)
		require.Equal(t, second/2, found[0].At, text)
	}
	require.Len(t, oracle.Violations(spends, oracle.MustRules("10/1s pace")), 1, "seven tokens keep the next call for 700 ms")
	require.Empty(t, oracle.Violations([]oracle.Spend{{At: 0, Cost: 7}, {At: 700 * ms, Cost: 4}}, oracle.MustRules("10/1s pace")))
	require.Len(t, oracle.Violations([]oracle.Spend{{At: 0, Cost: 7}, {At: 700*ms - 1, Cost: 4}}, oracle.MustRules("10/1s pace")), 1)
	require.Empty(t, oracle.Violations(spends, oracle.MustRules("2 concurrent")), "a call takes one slot whatever it costs")
}

func TestViolationTellsItsPlace(t *testing.T) {
	found := oracle.Judge(at(0, 1500, 1501), []oracle.Limit{{Key: "k", Rules: oracle.MustRules("1/1s")}})
	require.Len(t, found, 1)
	require.Equal(t, `rule "1/1s" of "k" bore 2 at 1501000000 (00:00:01.501000000)`, found[0].String())
}

func TestLimitCountsItsKeyAndKeysBelow(t *testing.T) {
	spends := at(0, 1, 2, 3)
	for i, key := range []string{"acme", "acme/search", "acmes", "other"} {
		spends[i].Key = key
	}
	limits := func(key string) []oracle.Limit {
		return []oracle.Limit{{Key: key, Rules: oracle.MustRules("1/1s")}}
	}
	require.Len(t, oracle.Judge(spends, limits("acme")), 1)
	require.Empty(t, oracle.Judge(spends, limits("acme/search")))
	require.Empty(t, oracle.Judge(spends, limits("acm")))
	require.Len(t, oracle.Judge(spends, limits("")), 3)
}

// The fast pass and the look at every spend must agree at every instant.
func TestFastWayAgreesWithBruteForce(t *testing.T) {
	rules := oracle.MustRules("3/10ms, 5/25ms, 4/10ms fixed, 3/7ms bucket burst=5, 1/3ms bucket burst=1, 3/10ms pace, 5/9ms counter, 4/7ms fixed tz=Asia/Kathmandu, 4 concurrent")
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		spends := randomLog(rng)
		for _, r := range rules {
			replay := fmt.Sprintf("seed %d, rule %s", seed, r)
			var most int64
			want := map[int64]int64{}
			for _, s := range spends {
				load := oracle.LoadAt(r, spends, s.At)
				most = max(most, load)
				if load > r.Most() {
					want[s.At] = load
				}
			}
			worst, _ := oracle.Worst(r, spends)
			require.Equal(t, most, worst, replay)
			got := map[int64]int64{}
			for _, v := range oracle.Violations(spends, []oracle.Rule{r}) {
				got[v.At] = v.Load
			}
			require.Equal(t, want, got, replay)
		}
	}
}

// randomLog is short and dense, on a coarse grid, so that spends share instants
// and sit exactly a window apart.
func randomLog(rng *rand.Rand) []oracle.Spend {
	spends := make([]oracle.Spend, rng.IntN(40))
	now := rng.Int64N(100) * ms
	for i := range spends {
		now += rng.Int64N(6) * ms
		spends[i] = oracle.Spend{Key: "k", At: now, Cost: 1 + rng.Int64N(3)}
		if rng.IntN(8) > 0 {
			spends[i].Done = now + rng.Int64N(20)*ms
		}
	}
	rng.Shuffle(len(spends), func(i, j int) { spends[i], spends[j] = spends[j], spends[i] })
	return spends
}

// No trailing window between spends can be heavier than one that ends at one.
func TestWorstWindowIsWorstAtEveryInstant(t *testing.T) {
	for seed := range uint64(50) {
		spends := randomLog(rand.New(rand.NewPCG(seed, 1)))
		for _, r := range oracle.MustRules("3/10ms, 4/10ms fixed, 3/7ms bucket burst=5, 5/9ms counter, 4 concurrent") {
			worst, _ := oracle.Worst(r, spends)
			for instant := int64(0); instant < 400*ms; instant += ms / 2 {
				require.LessOrEqual(t, oracle.LoadAt(r, spends, instant), worst, "seed %d, rule %s, at %d", seed, r, instant)
			}
		}
	}
}

func TestRuleBindsOnceAWindow(t *testing.T) {
	rule := oracle.MustRules("2/1s")[0]
	for _, c := range []struct {
		what   string
		spends []oracle.Spend
		binds  int
	}{
		{"never full", at(0, 1000, 2000), 0},
		{"full once", at(0, 10, 3000), 1},
		{"full at two instants of one window", at(0, 10, 10, 10), 1},
		{"full all the time", at(0, 500, 1000, 1500, 2000, 2500), 3},
		{"at the last spend it is asked whether one more would go", at(0, 10), 1},
		{"windows count from the first spend", at(900, 1000, 1950, 2000), 2},
	} {
		require.Equal(t, c.binds, oracle.Binds(rule, c.spends), c.what)
	}
	full := oracle.MustRules("2 concurrent")[0]
	require.Equal(t, 2, oracle.Binds(full, calls(0, 10, 5, 20, 10, 15, 30, 40)))
	dear := []oracle.Spend{{At: 0, Cost: 1}, {At: 2 * second, Cost: 2}}
	require.Equal(t, 2, oracle.Binds(rule, dear), "the next spend needs two, and one is spent")
}

// A counter of a unit counts that, and no calls.
func TestCounterSeesItsOwnUnit(t *testing.T) {
	rules := oracle.MustRules("30/10s counter unit=w")
	costly := at(0, 1)
	costly[1].Units = map[string]int64{"w": 31}
	require.NotEmpty(t, oracle.Violations(costly, rules))
	costly[1].Units["w"] = 30
	require.Empty(t, oracle.Violations(costly, rules))
	var calls []oracle.Spend
	for i := range int64(40) {
		calls = append(calls, at(i)...)
	}
	require.Empty(t, oracle.Violations(calls, rules))
}

// A rule of a unit sees what spends cost of that and nothing else, in the fast way
// and in the slow one.
func TestRulesSeeTheirOwnUnit(t *testing.T) {
	w := func(n int64) map[string]int64 { return map[string]int64{"w": n, "v": 100} }
	spends := []oracle.Spend{
		{At: 0, Cost: 50, Units: w(7)},
		{At: second / 4, Cost: 50},
		{At: second / 2, Cost: 50, Units: w(4)},
		{At: second, Cost: 50, Units: w(1)},
	}
	for text, breaks := range map[string]int{
		"10/1s unit=w": 1, "11/1s unit=w": 0, "10/1s fixed unit=w": 1, "11/1s fixed unit=w": 0,
		"2/1s bucket burst=9 unit=w": 2, "2/1s bucket burst=11 unit=w": 0, "0/1s unit=other": 0,
	} {
		rules := oracle.MustRules(text)
		found := oracle.Violations(spends, rules)
		require.Len(t, found, breaks, text)
		slow := 0
		for _, s := range spends {
			if oracle.LoadAt(rules[0], spends, s.At) > rules[0].Most() {
				slow++
			}
		}
		require.Equal(t, breaks, slow, text)
		if breaks > 0 {
			require.Equal(t, second/2, found[0].At, text)
			require.Contains(t, found[0].String(), "unit=w")
		}
	}
}
