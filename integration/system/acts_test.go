package system

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
	"ration/worker"
)

func (w *world) act(a lease.Act) lease.Acted {
	w.t.Helper()
	done, err := w.leader.Act(context.Background(), a)
	require.NoError(w.t, err)
	return done
}

// TestPausedKeyServesNobodyUntilItIsResumed: what lies below it neither. Callers wait for as
// long as they said, and are told why before that is over; the calls under way end, what is
// idle comes back at once, and the others go on when it is resumed.
func TestPausedKeyServesNobodyUntilItIsResumed(t *testing.T) {
	within(t, "  - {key: \"{t}/{s}\", rules: [50/1s, 3 concurrent]}\n", func(w *world) {
		one, two := w.join("one").Limiter("k/x"), w.join("two").Limiter("k/x")
		under := acquired(t, one, 1)
		w.act(lease.Act{Verb: lease.VerbPause, Key: "k", Reason: "incident 4711", By: "alice"})
		<-time.After(20 * time.Millisecond)
		s := w.status()
		require.LessOrEqual(t, s.Held.Tokens, int64(1), "idle tokens came back")
		require.Equal(t, int64(1), s.Held.Slots, "the call goes on")
		paused := time.Now()
		ctx, cancel := soon(2 * time.Second)
		defer cancel()
		_, err := two.Acquire(ctx, 1)
		var refused *worker.RefusedError
		require.ErrorAs(t, err, &refused, "the reason comes before the deadline")
		require.ErrorIs(t, err, lease.ErrPaused)
		require.Regexp(t, `^worker: refused: it is paused \("k" is paused since \S+Z by alice: incident 4711\)$`, err.Error())
		require.InDelta(t, 1.9, time.Since(paused).Seconds(), 0.05)
		waiting := waits(two, 1)
		<-time.After(20 * time.Second)
		require.False(t, waiting.decided())
		require.NoError(t, under.Context().Err(), "its slot is renewed")
		under.Finish()
		<-time.After(time.Second)
		require.Equal(t, lease.Amount{}, w.status().Held, "the slot came back when its call ended")
		other := acquired(t, w.join("other").Limiter("q/x"), 1)
		other.Finish()
		resumed := time.Now()
		w.act(lease.Act{Verb: lease.VerbResume, Key: "k"})
		<-waiting.done
		require.NoError(t, waiting.err)
		require.Less(t, waiting.at.Sub(resumed), 50*time.Millisecond)
		waiting.handle.Finish()
	})
}

// TestPauseEndsInItsTime: who waits long enough is served at its end, and who does not is
// refused at once.
func TestPauseEndsInItsTime(t *testing.T) {
	within(t, "  - {key: k, rules: [50/1s]}\n", func(w *world) {
		w.act(lease.Act{Verb: lease.VerbPause, Key: "k", For: 30 * time.Second})
		began := time.Now()
		limiter := w.join("one").Limiter("k")
		waiting := waits(limiter, 1)
		ctx, cancel := soon(10 * time.Second)
		defer cancel()
		_, err := w.join("two").Limiter("k").Acquire(ctx, 1)
		require.ErrorIs(t, err, lease.ErrPaused)
		require.Less(t, time.Since(began), 2*time.Second)
		<-waiting.done
		require.NoError(t, waiting.err)
		require.InDelta(t, 30, waiting.at.Sub(began).Seconds(), 0.1)
		waiting.handle.Finish()
	})
}

// TestChargeIsUsageOfTheFleet: what was charged is not granted again before its window is over.
func TestChargeIsUsageOfTheFleet(t *testing.T) {
	within(t, "  - {key: k, rules: [10/10s]}\n", func(w *world) {
		charge := lease.Act{Verb: lease.VerbCharge, Key: "k", ID: "a", N: 8, Age: 4 * time.Second}
		began := time.Now()
		w.act(charge)
		require.True(t, w.act(charge).Again)
		limiter := w.join("one").Limiter("k")
		for range 2 {
			h := acquired(t, limiter, 1)
			h.Finish()
		}
		require.Less(t, time.Since(began), time.Second)
		h := acquired(t, limiter, 1)
		require.InDelta(t, 6, time.Since(began).Seconds(), 0.1)
		h.Finish()
	})
}
