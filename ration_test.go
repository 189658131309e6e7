package ration_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ration"
	"ration/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func local(t testing.TB, policy, key string) (*ration.Client, *ration.Limiter) {
	t.Helper()
	client, err := ration.Local(policy)
	require.NoError(t, err)
	l, err := client.Limiter(key)
	require.NoError(t, err)
	return client, l
}

func balanced(t testing.TB, s ration.Stats) {
	t.Helper()
	require.Equal(t, s.Granted, s.Spent+s.Returned+s.Expired+s.Held, "%+v", s)
}

func TestABadPolicyOrKeySaysWhatIsWrong(t *testing.T) {
	_, err := ration.Local("limits: [{key: k, rules: [5/1parsec]}]")
	require.ErrorContains(t, err, "parsec")
	client, err := ration.Local("limits: [{key: k, rules: [5/1h]}]")
	require.NoError(t, err)
	_, err = client.Limiter("a//b")
	require.ErrorIs(t, err, ration.ErrBadKey)
	require.NoError(t, client.Close(t.Context()))
}

func TestConnectingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := ration.ConnectContext(ctx, "nats://127.0.0.1:1", ration.WithConnectWait(24*time.Hour)) // else it hangs
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "ration: connecting to nats://127.0.0.1:1")
}

func TestNobodyToConnectToIsNoCoordinator(t *testing.T) {
	_, err := ration.Connect("nats://127.0.0.1:1", ration.WithConnectWait(100*time.Millisecond))
	require.ErrorIs(t, err, ration.ErrNoCoordinator)
	require.ErrorContains(t, err, "or give Connect another URL")
	require.NotContains(t, err.Error(), "--", "a program has no flags")
}

func TestRefusalsSayWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, l := local(t, "limits: [{key: k, rules: [10/1h]}]", "k")
		err := l.WaitN(t.Context(), 11)
		require.ErrorIs(t, err, ration.ErrRefused)
		require.ErrorIs(t, err, lease.ErrNever)
		var refused *ration.Refused
		require.ErrorAs(t, err, &refused)
		require.True(t, refused.Never)
		require.Zero(t, refused.Wait)
		require.Equal(t, "10/1h", refused.Rule)

		stranger, err := client.Limiter("nobody")
		require.NoError(t, err)
		require.ErrorIs(t, stranger.Wait(t.Context()), lease.ErrUnknownKey)

		require.NoError(t, l.WaitN(t.Context(), 10))
		time.Sleep(2 * time.Second) // reported by now, and no longer held
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = l.Wait(ctx)
		require.ErrorIs(t, err, lease.ErrTooLate)
		require.ErrorAs(t, err, &refused)
		require.False(t, refused.Never)
		require.Greater(t, refused.Wait, 59*time.Minute)
		require.NoError(t, client.Close(t.Context()))
		require.ErrorIs(t, l.Wait(t.Context()), ration.ErrClosed)
	})
}

func TestTwoRulesAreBothKeptAtTheContractsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, l := local(t, "limits: [{key: k, rules: [5/1s, 12/3s]}]", "k")
		begun := time.Now()
		var group sync.WaitGroup
		for range 30 {
			group.Go(func() {
				if err := l.Wait(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		took := time.Since(begun)
		require.GreaterOrEqual(t, took, 7*time.Second)
		require.LessOrEqual(t, took, 7*time.Second+7*time.Second/5000+10*time.Millisecond)
		balanced(t, client.Stats())
		require.NoError(t, client.Close(t.Context()))
	})
}

func TestTheFirstEndOfAHandleCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, l := local(t, "limits: [{key: k, rules: [10/1h, 1 concurrent]}]", "k")
		h, err := l.Acquire(t.Context(), 5)
		require.NoError(t, err)
		require.NoError(t, h.Context().Err())
		h.Cancel()
		require.ErrorIs(t, h.Context().Err(), context.Canceled)
		h.Finish()
		h.Abandon()
		require.NoError(t, h.Settle(5))
		time.Sleep(time.Second)
		require.EqualValues(t, 0, client.Stats().Spent)
		h, err = l.Acquire(t.Context(), 10)
		require.NoError(t, err, "all is back")
		require.NoError(t, h.Settle(11))
		require.EqualValues(t, 10, client.Stats().Spent)
		require.EqualValues(t, 1, client.Stats().Overspent)
		require.NoError(t, client.Close(t.Context()))
	})
}

// Allow, Wait, Acquire, cancels and ends from many goroutines at once: the limit
// is kept, nobody stays blocked, and the books balance.
func TestLawHoldsUnderAStressOfAllCallsAtOnce(t *testing.T) {
	client, l := local(t, "limits: [{key: k, rules: [5000/1h]}]", "k")
	var spent atomic.Int64
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 3))
			for range 400 {
				stress(t, l, rnd, &spent)
			}
		})
	}
	group.Wait()
	s := client.Stats()
	balanced(t, s)
	require.Equal(t, spent.Load(), s.Spent)
	require.LessOrEqual(t, s.Spent, int64(5000))
	require.NoError(t, client.Close(context.Background()))
	s = client.Stats()
	require.Zero(t, s.Held)
	balanced(t, s)
}

func stress(t *testing.T, l *ration.Limiter, rnd *rand.Rand, spent *atomic.Int64) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rnd.IntN(2000))*time.Microsecond)
	defer cancel()
	over := func(err error) bool {
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ration.ErrRefused) {
			t.Error(err)
		}
		return err != nil
	}
	switch rnd.IntN(3) {
	case 0:
		if l.Allow() {
			spent.Add(1)
		}
	case 1:
		if !over(l.Wait(ctx)) {
			spent.Add(1)
		}
	case 2:
		h, err := l.Acquire(ctx, 2)
		if over(err) {
			return
		}
		switch rnd.IntN(3) {
		case 0:
			h.Cancel() // long before it counts as spent
		case 1:
			h.Finish()
			spent.Add(2)
		case 2:
			if err := h.Settle(1); err != nil {
				t.Error(err)
			}
			spent.Add(1)
		}
	}
}

func BenchmarkAllow(b *testing.B) {
	client, l := local(b, "limits: [{key: k, rules: [1000000000000/1s bucket]}]", "k")
	if err := l.Wait(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	taken := 0
	for b.Loop() {
		if l.Allow() {
			taken++
		}
	}
	b.ReportMetric(float64(taken)/float64(b.N), "taken/op")
	b.StopTimer()
	if err := client.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAllowParallel is what a token costs each of many goroutines, refills
// included: one that finds none asks again, so that each operation is a token.
func BenchmarkAllowParallel(b *testing.B) {
	client, l := local(b, "limits: [{key: k, rules: [1000000000000/1s bucket]}]", "k")
	if err := l.Wait(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var taken, missed atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		var own, misses int64
		for ; pb.Next(); own++ {
			for !l.Allow() {
				misses++
				runtime.Gosched()
			}
		}
		taken.Add(own)
		missed.Add(misses)
	})
	b.ReportMetric(float64(taken.Load())/float64(b.N), "taken/op")
	b.ReportMetric(float64(missed.Load())/float64(b.N), "missed/op")
	b.StopTimer()
	if err := client.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	if spent := client.Stats().Spent; spent != taken.Load()+1 {
		b.Fatalf("took %d tokens, and the books say %d", taken.Load(), spent)
	}
}

func BenchmarkAcquire(b *testing.B) {
	client, l := local(b, "limits: [{key: k, rules: [1000000000000/1s bucket]}]", "k")
	b.ReportAllocs()
	for b.Loop() {
		h, err := l.Acquire(context.Background(), 1)
		if err != nil {
			b.Fatal(err)
		}
		h.Finish()
	}
	b.StopTimer()
	if err := client.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// A call takes of each rule in its own unit; what it settles below that goes back,
// also a unit of which it used none.
func TestUnitsAreTakenSettledAndGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, l := local(t, "limits: [{key: k, rules: [10/1h, 1000/1h unit=tokens, 5/1h unit=images]}]", "k")
		for range 5 {
			h, err := l.Acquire(t.Context(), 1, ration.Units{"tokens": 900, "images": 1})
			require.NoError(t, err)
			require.NoError(t, h.Settle(1, ration.Units{"tokens": 100, "images": 0}))
		}
		s := client.Stats()
		require.EqualValues(t, 500, s.UnitsSpent)
		require.NoError(t, l.WaitN(t.Context(), 1, ration.Units{"tokens": 500, "images": 5}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var refused *ration.Refused
		require.ErrorAs(t, l.WaitN(ctx, 1, ration.Units{"images": 1}), &refused)
		require.Equal(t, "5/1h unit=images", refused.Rule)
		require.NoError(t, l.WaitN(t.Context(), 1, ration.Units{"sheep": 7, "images": 0}), "of a unit that no rule counts there is no end")
		require.NoError(t, client.Close(t.Context()))
		s = client.Stats()
		balanced(t, s)
		require.Equal(t, s.UnitsGranted, s.UnitsSpent+s.UnitsReturned+s.UnitsExpired)
		require.Zero(t, s.UnitsHeld)
	})
}

func TestUnitsThatMakeNoSenseSayWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, l := local(t, "limits: [{key: k, rules: [10/1h, 1000/1h unit=tokens]}]", "k")
		for says, units := range map[string]ration.Units{
			`ration: -5 of unit "tokens"; the least is 1`: {"tokens": -5},
			`ration: the unit "Tokens" does not begin`:    {"Tokens": 5},
			`ration: the unit "call" is what tokens`:      {"call": 5},
			`ration: it names 9 units; name at most 8`:    {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "h": 1, "i": 1},
		} {
			_, err := l.Acquire(t.Context(), 1, units)
			require.ErrorContains(t, err, says)
			require.ErrorContains(t, l.WaitN(t.Context(), 1, units), says)
			require.False(t, l.AllowN(1, units))
		}
		h, err := l.Acquire(t.Context(), 1, ration.Units{"tokens": 5})
		require.NoError(t, err)
		require.EqualError(t, h.Settle(1, ration.Units{"tokens": -6}),
			"ration: settled -6 tokens of a call that asked for 5; settle from 0 to 1000000000000000: all that it asked for counts as spent")
		require.NoError(t, client.Close(t.Context()))
		require.EqualValues(t, 5, client.Stats().UnitsSpent)
	})
}

func TestAllowTakesUnitsAtHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, l := local(t, "limits: [{key: k, rules: [10/1h, 1000/1h unit=tokens]}]", "k")
		require.False(t, l.AllowN(1, ration.Units{"tokens": 400}), "none is at hand yet")
		allowed := int64(0)
		for range 100 {
			time.Sleep(10 * time.Millisecond)
			if l.AllowN(1, ration.Units{"tokens": 400}) {
				allowed++
			}
		}
		require.EqualValues(t, 2, allowed)
		require.NoError(t, client.Close(t.Context()))
		require.EqualValues(t, 800, client.Stats().UnitsSpent)
	})
}
