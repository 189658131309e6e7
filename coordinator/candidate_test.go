package coordinator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/coordinator"
	"ration/lease"
)

// watcher looks at a seat, over and over.
type watcher struct {
	t     *testing.T
	c     *coordinator.Candidate
	now   time.Duration
	heard coordinator.Heard
}

func newWatcher(t *testing.T) *watcher { return newLagging(t, time.Second) }

// newLagging is one whose mirror may forget as much when it is started again.
func newLagging(t *testing.T, lag time.Duration) *watcher {
	c := coordinator.NewCandidate(coordinator.CandidateConfig{
		Name: "x", Partitions: 1, TTL: 2 * time.Second, Early: 100 * time.Millisecond, Lag: lag,
	})
	return &watcher{t: t, c: c, now: time.Hour, heard: coordinator.Heard{Connected: true}}
}

// seatAt is one of an epoch, as its leader wrote it.
func seatAt(number, beat uint64, at algo.Instant) lease.Seat {
	return lease.Seat{Epoch: lease.Epoch{Number: number, Mark: 1}, Partitions: 1, Mirror: 9, Pulse: lease.Pulse{Beat: beat, Instant: at}}
}

// for looks at the seat every 10 ms for d, or until it campaigns, and tells after how long
// that was.
func (w *watcher) watch(d time.Duration, s lease.Seat) (next lease.Seat, after time.Duration, campaigned bool) {
	began := w.now
	for ; w.now <= began+d; w.now += 10 * time.Millisecond {
		if next, campaign, _ := w.c.Watch(w.now, 0, s, w.heard); campaign {
			return next, w.now - began, true
		}
	}
	return next, d, false
}

func TestSeatThatStandsStillIsTaken(t *testing.T) {
	w := newWatcher(t)
	for beat := range uint64(100) {
		_, _, campaigned := w.watch(50*time.Millisecond, seatAt(3, beat, 0))
		require.False(t, campaigned, "its leader lives")
	}
	next, after, campaigned := w.watch(time.Minute, seatAt(3, 100, 7))
	require.True(t, campaigned)
	require.Equal(t, 2*time.Second, after)
	require.Equal(t, uint64(4), next.Epoch.Number)
	require.Equal(t, algo.Instant(7).Add(2*time.Second), next.Pulse.Instant, "what was written, and what was watched since")
	require.Zero(t, next.Lost)
}

func TestSilenceOfTheNetworkTakesASeatEarly(t *testing.T) {
	w := newWatcher(t)
	w.watch(time.Second, seatAt(3, 1, 0))
	w.heard.Silent = true
	_, after, campaigned := w.watch(time.Minute, seatAt(3, 1, 0))
	require.True(t, campaigned)
	require.Equal(t, 100*time.Millisecond, after)

	w = newWatcher(t)
	w.heard.Silent = true // a route is lost, and the leader goes on
	for beat := range uint64(100) {
		_, _, campaigned := w.watch(50*time.Millisecond, seatAt(3, beat, 0))
		require.False(t, campaigned)
	}
}

func TestWhoWasDeposedDoesNotCampaignEarly(t *testing.T) {
	w := newWatcher(t)
	w.heard.Silent = true
	for _, least := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		w.c.Deposed(w.now)
		s := seatAt(3, uint64(least), 0)
		for passed := time.Duration(0); passed < least; passed += 500 * time.Millisecond { // the seat moves
			s.Pulse.Beat++
			_, _, campaigned := w.watch(400*time.Millisecond, s)
			require.False(t, campaigned, "%v after", passed)
			w.now += 90 * time.Millisecond
		}
	}
}

func TestVacantSeatIsTakenAtOnce(t *testing.T) {
	w := newWatcher(t)
	w.watch(time.Second, seatAt(3, 1, 0))
	s := seatAt(3, 1, 0)
	s.Vacant = true
	_, after, campaigned := w.watch(time.Minute, s)
	require.True(t, campaigned)
	require.Zero(t, after)
}

func TestWhoIsNotConnectedNeverCampaigns(t *testing.T) {
	w := newWatcher(t)
	w.heard = coordinator.Heard{}
	for _, s := range []lease.Seat{{}, seatAt(3, 1, 0)} {
		_, _, campaigned := w.watch(10*time.Second, s)
		require.False(t, campaigned)
	}
}

func TestEmptyMirrorIsNewOnlyToWhoHasSeenNone(t *testing.T) {
	w := newWatcher(t)
	next, after, campaigned := w.watch(time.Minute, lease.Seat{})
	require.True(t, campaigned)
	require.Zero(t, after)
	require.True(t, next.Fresh)
	require.Zero(t, next.Lost)

	for name, prepare := range map[string]func(w *watcher){
		"it has seen one itself": func(w *watcher) { w.watch(time.Second, seatAt(3, 1, 1000)) },
		"another one has":        func(w *watcher) { w.heard.Number = 3 },
	} {
		w := newWatcher(t)
		prepare(w)
		next, after, campaigned := w.watch(time.Minute, lease.Seat{})
		require.True(t, campaigned, name)
		require.Equal(t, 2*time.Second, after, "%s: who has the ledger comes first", name)
		require.Equal(t, uint64(4), next.Epoch.Number, name)
		require.Equal(t, uint64(4), next.Lost.Epoch, "%s: what it had counts as lost", name)
		require.False(t, next.Fresh, name)
	}

	w = newWatcher(t)
	w.watch(time.Second, seatAt(3, 1, 0))
	w.heard.Served = true // it writes back what it knows
	_, _, campaigned = w.watch(time.Minute, lease.Seat{})
	require.False(t, campaigned)
}

// TestEmptyMirrorIsLeftToALeaderThatStandsStill: it listens and does not answer, and what
// another coordinator knows is not heard meanwhile. One that has not answered for a TTL is
// gone, or was never one: whoever reads along listens too.
func TestEmptyMirrorIsLeftToALeaderThatStandsStill(t *testing.T) {
	w := newWatcher(t)
	w.heard.Mute = true
	_, _, campaigned := w.watch(1900*time.Millisecond, lease.Seat{})
	require.False(t, campaigned)
	w.heard = coordinator.Heard{Connected: true, Served: true, Number: 3} // it goes on
	_, _, campaigned = w.watch(time.Minute, lease.Seat{})
	require.False(t, campaigned)

	for name, c := range map[string]struct {
		prepare func(w *watcher)
		after   time.Duration
	}{
		"it goes on standing still": {func(w *watcher) {}, 2 * time.Second},
		"nobody listens any more":   {func(w *watcher) { w.heard.Mute, w.heard.Silent = false, true }, 0},
	} {
		w := newWatcher(t)
		w.heard.Mute = true
		w.watch(0, lease.Seat{})
		began := w.now - 10*time.Millisecond
		c.prepare(w)
		next, _, campaigned := w.watch(time.Minute, lease.Seat{})
		require.True(t, campaigned, name)
		require.LessOrEqual(t, w.now-began, c.after+10*time.Millisecond, name)
		require.GreaterOrEqual(t, w.now-began, c.after, name)
		require.True(t, next.Fresh, name)
	}

	cold := coordinator.NewCandidate(coordinator.CandidateConfig{Name: "x", Partitions: 1, TTL: 2 * time.Second, Early: 100 * time.Millisecond, Cold: true})
	_, campaign, _ := cold.Watch(time.Hour, 0, lease.Seat{}, coordinator.Heard{Connected: true, Mute: true})
	require.True(t, campaign, "--cold-start waives it")
}

func TestMirrorOfAnotherLifeIsCharged(t *testing.T) {
	w := newWatcher(t)
	s := seatAt(3, 1, 0)
	s.Run, s.Running = "first", "second"
	next, _, campaigned := w.watch(time.Minute, s)
	require.True(t, campaigned)
	require.Equal(t, lease.Doubt{Epoch: 4, At: next.Pulse.Instant, Lag: time.Second}, next.Lagged)
	require.Equal(t, "second", next.Run)

	w = newLagging(t, 0)
	next, _, campaigned = w.watch(time.Minute, s)
	require.True(t, campaigned)
	require.Zero(t, next.Lagged, "a mirror that forgets nothing has all that it had")
	require.Equal(t, "second", next.Run)
}

// TestMirrorThatWentBackIsChargedForAllThatItLacks: one that was started again from an old
// copy, under the same epoch, lacks turns that were seen. That is more than it is said to
// forget, or it is said to forget nothing.
func TestMirrorThatWentBackIsChargedForAllThatItLacks(t *testing.T) {
	for name, lag := range map[string]time.Duration{"it forgets a second": time.Second, "it forgets nothing": 0} {
		w := newLagging(t, lag)
		old := seatAt(3, 1, algo.Instant(0).Add(time.Minute))
		old.Seq, old.Run, old.Running = 10, "first", "first"
		w.watch(0, old)
		s := old
		for range 30 { // its leader goes on
			s.Seq++
			s.Pulse.Beat++
			s.Pulse.Instant = s.Pulse.Instant.Add(time.Second)
			w.watch(time.Second, s)
		}
		old.Running = "second"
		next, _, campaigned := w.watch(time.Minute, old)
		require.True(t, campaigned, name)
		require.Equal(t, uint64(4), next.Lagged.Epoch, name)
		require.GreaterOrEqual(t, next.Lagged.Lag, 30*time.Second, name)
		require.LessOrEqual(t, next.Lagged.Lag, 32*time.Second, name)

		s = seatAt(4, 1, old.Pulse.Instant) // whoever led since has seen to it
		s.Run, s.Running = "second", "second"
		next, _, campaigned = w.watch(time.Minute, s)
		require.True(t, campaigned, name)
		require.Zero(t, next.Lagged, name)
	}
}

// TestLedgerTimeGoesOnFromWhatWasWritten: also for who led before, and whose own clock is
// further: marks of the leader in between would come back too early by it.
func TestLedgerTimeGoesOnFromWhatWasWritten(t *testing.T) {
	w := newWatcher(t)
	w.watch(time.Second, seatAt(3, 1, 0))
	w.c.Led(w.now, 10_000_000_000, lease.Epoch{Number: 4})
	w.watch(0, seatAt(5, 1, 9_000_000_000))
	next, after, campaigned := w.watch(time.Minute, seatAt(5, 1, 9_000_000_000))
	require.True(t, campaigned)
	require.LessOrEqual(t, next.Pulse.Instant, algo.Instant(9_000_000_000).Add(after+10*time.Millisecond))
}

// TestFullOutageAddsTheSmallerOfTwoClocks: so a step of one of them makes no room.
func TestFullOutageAddsTheSmallerOfTwoClocks(t *testing.T) {
	for name, c := range map[string]struct{ own, mirrors, want time.Duration }{
		"both are right":        {time.Hour, time.Hour, time.Hour},
		"its own has stepped":   {25 * time.Hour, time.Hour, time.Hour},
		"the mirror's has":      {time.Hour, 25 * time.Hour, time.Hour},
		"one of them went back": {-time.Hour, time.Hour, 2 * time.Second},
	} {
		w := newWatcher(t)
		s := seatAt(3, 1, 5)
		s.Pulse.Wall, s.Clock = 1000, 2000
		s.Now = s.Clock.Add(c.mirrors)
		began := w.now
		for {
			next, campaign, _ := w.c.Watch(w.now, s.Pulse.Wall.Add(c.own), s, w.heard)
			if campaign {
				require.Equal(t, algo.Instant(5).Add(c.want), next.Pulse.Instant, name)
				break
			}
			require.Less(t, w.now-began, time.Minute)
			w.now += 10 * time.Millisecond
		}
	}
}

// TestSeatIsLedUnderEachEpochOnce: a bid of which there was no answer is found won; what
// was led and could not be given up is not led again.
func TestSeatIsLedUnderEachEpochOnce(t *testing.T) {
	w := newWatcher(t)
	next, _, campaigned := w.watch(time.Minute, lease.Seat{})
	require.True(t, campaigned)
	next.Epoch.Mark = 77
	w.c.Bid(next.Epoch)
	_, _, won := w.c.Watch(w.now, 0, next, w.heard)
	require.True(t, won)
	w.c.Won(next)
	w.c.Led(w.now, 5, next.Epoch)
	for range 50 {
		w.now += 10 * time.Millisecond
		_, _, won := w.c.Watch(w.now, 0, next, w.heard)
		require.False(t, won)
	}
}

func TestRivalIsNamed(t *testing.T) {
	w := newWatcher(t)
	w.watch(time.Second, seatAt(3, 1, 0))
	require.NoError(t, w.c.Rival(w.now, w.heard))
	w.heard.Rivals = []coordinator.Rival{{Name: "coordinator b", Mirror: 0xab}}
	err := w.c.Rival(w.now, w.heard)
	require.ErrorIs(t, err, lease.ErrRival)
	require.ErrorContains(t, err, "coordinator b has mirror ab, and this one 9")
}

// TestSeatIsLeftToWhoLeadsUnderAHigherEpoch: on the side of a split mirror that is cut off a
// seat stands still, or is vacant, or is the candidate's own by a bid, while another leads on
// the other side.
func TestSeatIsLeftToWhoLeadsUnderAHigherEpoch(t *testing.T) {
	for name, prepare := range map[string]func(w *watcher, s *lease.Seat){
		"stands still": func(*watcher, *lease.Seat) {},
		"vacant":       func(_ *watcher, s *lease.Seat) { s.Vacant = true },
		"its own bid":  func(w *watcher, s *lease.Seat) { w.c.Bid(s.Epoch) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatcher(t)
			s := seatAt(3, 1, 0)
			prepare(w, &s)
			w.heard.Number, w.heard.Led = 4, 4
			for range 6000 {
				w.now += 10 * time.Millisecond
				_, campaigns, won := w.c.Watch(w.now, 0, s, w.heard)
				require.False(t, campaigns || won)
			}
			w.heard.Led = 0
			next, campaigns, won := w.c.Watch(w.now, 0, s, w.heard)
			require.True(t, campaigns || won)
			if campaigns {
				require.Equal(t, uint64(5), next.Epoch.Number)
			}

			w = newWatcher(t)
			s, campaigns, won = seatAt(4, 1, 0), false, false
			prepare(w, &s)
			w.heard.Number, w.heard.Led = 4, 4 // its own leader, as it was heard last
			for began := w.now; !campaigns && !won; w.now += 10 * time.Millisecond {
				require.LessOrEqual(t, w.now-began, 2*time.Second)
				_, campaigns, won = w.c.Watch(w.now, 0, s, w.heard)
			}
		})
	}
}

// TestStandbyWhoseMirrorHasLostTheSeatWaits for the leader to write it back, however long that
// takes; who has never seen a seat has another mirror than the leader.
func TestStandbyWhoseMirrorHasLostTheSeatWaits(t *testing.T) {
	for name, c := range map[string]struct{ seen, rival bool }{"has seen one": {true, false}, "has never": {false, true}} {
		t.Run(name, func(t *testing.T) {
			w := newWatcher(t)
			if c.seen {
				w.watch(time.Second, seatAt(3, 1, 0))
			}
			w.heard.Served, w.heard.Number = true, 3
			_, _, campaigned := w.watch(time.Second, lease.Seat{})
			require.False(t, campaigned)
			require.NoError(t, w.c.Rival(w.now, w.heard))
			_, _, campaigned = w.watch(time.Minute, lease.Seat{})
			require.False(t, campaigned)
			if err := w.c.Rival(w.now, w.heard); c.rival {
				require.ErrorIs(t, err, lease.ErrRival)
			} else {
				require.NoError(t, err)
			}
		})
	}
}
