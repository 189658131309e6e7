package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ration/algo"
	"ration/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a lessor over a real ledger, with time from the bubble, that can
// be told to fail and counts what it heard.
type scripted struct {
	mu      sync.Mutex
	base    time.Time
	ledger  *lease.Ledger
	tickets lease.Ticket
	answers map[lease.Ticket]chan lease.Answer
	replies map[lease.Ticket]chan lease.Reply
	recalls map[lease.Holder]func(lease.Recall)
	timer   *time.Timer

	down     atomic.Bool
	asked    atomic.Int64
	goodbyes atomic.Int64
}

func newScripted(t testing.TB, policy string) *scripted {
	p, err := lease.ParsePolicy("test", []byte(policy))
	require.NoError(t, err)
	return &scripted{
		base: time.Now(), ledger: lease.NewLedger(p, lease.DefaultConfig()),
		answers: map[lease.Ticket]chan lease.Answer{}, replies: map[lease.Ticket]chan lease.Reply{},
		recalls: map[lease.Holder]func(lease.Recall){},
	}
}

func (s *scripted) now() algo.Instant { return epoch.Add(time.Since(s.base)) }

// turn is called under mu.
func (s *scripted) turn(in ...lease.Message) {
	now := s.now()
	for i := range in {
		in[i].Arrived = now
	}
	t := s.ledger.Turn(now, in)
	for _, a := range t.Answers {
		if to := s.answers[a.Ticket]; to != nil {
			delete(s.answers, a.Ticket)
			to <- a.Answer
		}
	}
	for _, r := range t.Replies {
		if to := s.replies[r.Ticket]; to != nil {
			delete(s.replies, r.Ticket)
			to <- r.Reply
		}
	}
	for _, r := range t.Recalls {
		if got := s.recalls[r.Holder]; got != nil {
			got(r)
		}
	}
	if at, ok := s.ledger.Next(); ok {
		if s.timer != nil {
			s.timer.Stop()
		}
		s.timer = time.AfterFunc(max(0, at.Sub(now)), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.turn()
		})
	}
}

func (s *scripted) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
}

func (s *scripted) Acquire(ctx context.Context, r lease.Request) (lease.Answer, error) {
	s.asked.Add(1)
	if s.down.Load() {
		return lease.Answer{}, lease.ErrNoCoordinator
	}
	to := make(chan lease.Answer, 1)
	s.mu.Lock()
	s.tickets++
	s.answers[s.tickets] = to
	s.turn(lease.Message{Ticket: s.tickets, Request: &r})
	s.mu.Unlock()
	select {
	case a := <-to:
		return a, nil
	case <-ctx.Done():
		return lease.Answer{}, ctx.Err()
	}
}

func (s *scripted) Report(ctx context.Context, r lease.Report) (lease.Reply, error) {
	if s.down.Load() {
		return lease.Reply{}, lease.ErrNoCoordinator
	}
	if r.Goodbye {
		s.goodbyes.Add(1)
	}
	to := make(chan lease.Reply, 1)
	s.mu.Lock()
	s.tickets++
	s.replies[s.tickets] = to
	s.turn(lease.Message{Ticket: s.tickets, Report: &r})
	s.mu.Unlock()
	select {
	case a := <-to:
		return a, nil
	case <-ctx.Done():
		return lease.Reply{}, ctx.Err()
	}
}

func (s *scripted) Recalls(ctx context.Context, h lease.Holder, got func(lease.Recall)) error {
	s.mu.Lock()
	s.recalls[h] = got
	s.mu.Unlock()
	<-ctx.Done()
	return nil
}

// held is what the ledger counts as held on a key.
func (s *scripted) held() lease.Amount {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.Status(s.now(), "").Held
}

func (s *scripted) start(t testing.TB, name string) *Worker {
	cfg := DefaultConfig()
	cfg.Name, cfg.MonotonicOnly, cfg.Seed = name, true, 1
	w, err := New(s, cfg)
	require.NoError(t, err)
	return w
}

func (s *scripted) end(t testing.TB, ws ...*Worker) {
	for _, w := range ws {
		require.NoError(t, w.Close(context.Background()))
		balanced(t, w.Stats(), w.Name())
		require.Zero(t, w.Stats().Held)
	}
	s.stop()
}

func bubble(t *testing.T, policy string, f func(t *testing.T, s *scripted)) {
	synctest.Test(t, func(t *testing.T) { f(t, newScripted(t, policy)) })
}

// With a context that has ended nothing is taken, and nothing sent.
func TestAnEndedContextTakesNothing(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [1000/1s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		l := w.Limiter("k")
		require.NoError(t, l.Wait(t.Context()))
		time.Sleep(10 * time.Millisecond)
		before, asked := w.Stats(), s.asked.Load()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		late, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		for range 5000 {
			require.ErrorIs(t, l.Wait(gone), context.Canceled)
			_, err := l.Acquire(late, 1)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Equal(t, before.Granted, w.Stats().Granted)
		require.Equal(t, before.Spent, w.Stats().Spent)
		require.Equal(t, asked, s.asked.Load())
		s.end(t, w)
	})
}

func TestACostBelowOneIsAnErrorThatNamesIt(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/1s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		for _, n := range []int64{0, -3} {
			require.ErrorContains(t, w.Limiter("k").WaitN(t.Context(), n), fmt.Sprint(n))
			_, err := w.Limiter("k").Acquire(t.Context(), n)
			require.ErrorContains(t, err, fmt.Sprint(n))
			require.False(t, w.Limiter("k").AllowN(n))
		}
		require.Zero(t, s.asked.Load())
		s.end(t, w)
	})
}

// Who stands behind a large caller is served when that leaves, at once.
func TestACancelledHeadServesTheNext(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/10s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		l := w.Limiter("k")
		require.NoError(t, l.WaitN(t.Context(), 9))
		head, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { first <- l.WaitN(head, 5) }()
		synctest.Wait()
		second := make(chan error, 1)
		go func() { second <- l.WaitN(t.Context(), 1) }()
		time.Sleep(500 * time.Millisecond)
		require.Empty(t, second)
		cancel()
		require.ErrorIs(t, <-first, context.Canceled)
		begun := time.Now()
		require.NoError(t, <-second)
		require.Less(t, time.Since(begun), 10*time.Millisecond)
		s.end(t, w)
	})
}

// A limit that is waited for is kept.
func TestWaitersKeepTheLimit(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [1/100ms]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var served atomic.Int64
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() {
				if w.Limiter("k").Wait(ctx) == nil {
					served.Add(1)
				}
			})
		}
		group.Wait()
		require.LessOrEqual(t, served.Load(), int64(20))
		require.GreaterOrEqual(t, served.Load(), int64(19))
		s.end(t, w)
	})
}

// No more calls run than slots, and an overrunning call keeps its.
func TestSlotsAreHeldUntilTheCallEnds(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [2 concurrent]}]", func(t *testing.T, s *scripted) {
		a, b := s.start(t, "a"), s.start(t, "b")
		var running, most atomic.Int64
		var group sync.WaitGroup
		for i := range 40 {
			w := []*Worker{a, b}[i%2]
			group.Go(func() {
				h, err := w.Limiter("k").Acquire(t.Context(), 1)
				if !errorsNil(t, err) {
					return
				}
				n := running.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				span := 50 * time.Millisecond
				if i == 7 {
					span = time.Minute // far beyond any TTL
				}
				time.Sleep(span)
				running.Add(-1)
				if h.Context().Err() != nil {
					t.Errorf("call %d lost its slot: %v", i, context.Cause(h.Context()))
				}
				h.Finish()
			})
		}
		group.Wait()
		require.EqualValues(t, 2, most.Load())
		require.ErrorIs(t, a.Limiter("k").Wait(t.Context()), lease.ErrNeedsSlot)
		require.False(t, a.Limiter("k").Allow())
		s.end(t, a, b)
		require.Zero(t, s.held())
	})
}

func errorsNil(t *testing.T, err error) bool {
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// What is refused takes nothing from what is left.
func TestAllowRefusesWhatIsNotThereAndKeepsTheRest(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/1h]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		l := w.Limiter("k")
		require.NoError(t, l.WaitN(t.Context(), 8))
		for range 3 {
			require.False(t, l.AllowN(5))
			time.Sleep(2 * time.Second)
		}
		got := 0
		for range 20 {
			if l.Allow() {
				got++
			}
			time.Sleep(300 * time.Millisecond)
		}
		require.Equal(t, 2, got)
		s.end(t, w)
	})
}

// A cancel storm: the books balance, the others are served at the contract's
// pace, nothing is held for the cancelled.
func TestCancelStorm(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/1s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		var served, cancelled atomic.Int64
		var group sync.WaitGroup
		begun := time.Now()
		for i := range 1000 {
			ctx, cancel := context.WithCancel(t.Context())
			if i%10 != 0 { // some of them in the very instant of a grant
				time.AfterFunc(time.Duration(i*7919%8000)*time.Millisecond, cancel)
			}
			group.Go(func() {
				defer cancel()
				switch err := w.Limiter("k").Wait(ctx); {
				case err == nil:
					served.Add(1)
				case errors.Is(err, context.Canceled):
					cancelled.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		require.EqualValues(t, 1000, served.Load()+cancelled.Load())
		require.GreaterOrEqual(t, served.Load(), int64(100))
		took := time.Since(begun)
		least := time.Duration((served.Load()-1)/10) * time.Second
		require.GreaterOrEqual(t, took, least)
		require.LessOrEqual(t, took, least+least/5000+500*time.Millisecond)
		b := w.Stats()
		balanced(t, b, "after the storm")
		require.Equal(t, served.Load(), b.Spent)
		time.Sleep(2 * time.Second)
		require.Zero(t, w.Stats().Held)
		require.Zero(t, s.held())
		s.end(t, w)
	})
}

func TestALostLeaseEndsTheHandlesContext(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [2 concurrent]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		h, err := w.Limiter("k").Acquire(t.Context(), 1)
		require.NoError(t, err)
		ctx := h.Context()
		s.down.Store(true)
		begun := time.Now()
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), ErrLeaseLost)
		require.Less(t, time.Since(begun), 10*time.Second, "before the ledger gives the slot away")
		h.Finish()
		require.EqualValues(t, 1, w.Stats().LostCalls)
		s.down.Store(false)
		s.end(t, w)
	})
}

func TestNoCoordinatorIsTheReasonOfADeadline(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/1s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		s.down.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := w.Limiter("k").Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, lease.ErrNoCoordinator)
		require.Error(t, w.Contact(ctx, "k"))
		asked := s.asked.Load()
		require.LessOrEqual(t, asked, int64(60), "it backs off")
		go func() { time.Sleep(3 * time.Second); s.down.Store(false) }()
		require.NoError(t, w.Limiter("k").Wait(t.Context()), "it goes on asking")
		require.NoError(t, w.Contact(t.Context(), "k"))
		s.end(t, w)
	})
}

func TestCloseReturnsAllFailsWhoWaitsAndSaysGoodbye(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [10/1h, 4 concurrent]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		l := w.Limiter("k")
		h, err := l.Acquire(t.Context(), 3)
		require.NoError(t, err)
		waits := make(chan error, 1)
		go func() { _, err := l.Acquire(t.Context(), 9); waits <- err }()
		synctest.Wait()
		s.end(t, w)
		require.ErrorIs(t, <-waits, lease.ErrStopped)
		require.ErrorIs(t, context.Cause(h.Context()), ErrClosed)
		require.EqualValues(t, 1, s.goodbyes.Load())
		require.Zero(t, s.held())
		_, err = l.Acquire(t.Context(), 1)
		require.ErrorIs(t, err, ErrClosed)
		_, err = w.Limiter("other").Acquire(t.Context(), 1)
		require.ErrorIs(t, err, ErrClosed)
		require.NoError(t, w.Close(t.Context()))
	})
}

func TestAPausedWorkerTakesANewIncarnation(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [2 concurrent]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		old := w.Holder()
		h, err := w.Limiter("k").Acquire(t.Context(), 1)
		require.NoError(t, err)
		w.late(11 * time.Second) // by then it had not begun
		require.Equal(t, old, w.Holder())
		time.Sleep(12 * time.Second)
		w.late(11 * time.Second)
		<-h.Context().Done()
		require.ErrorIs(t, context.Cause(h.Context()), ErrLeaseLost)
		require.Equal(t, old.Name, w.Holder().Name)
		require.NotEqual(t, old.Incarnation, w.Holder().Incarnation)
		second := w.Holder()
		w.late(11 * time.Second) // another timer that the same pause held up
		require.Equal(t, second, w.Holder())
		next, err := w.Limiter("k").Acquire(t.Context(), 1)
		require.NoError(t, err)
		next.Finish()
		s.end(t, w)
	})
}

func TestIdleLanesLeaveMemoryButNotTheBooks(t *testing.T) {
	bubble(t, "limits: [{key: '{k}', rules: [10/1s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		for i := range 50 {
			require.NoError(t, w.Limiter(lease.Key(fmt.Sprint("t/", i))).Wait(t.Context()))
		}
		require.Len(t, w.allLanes(), 50)
		time.Sleep(2 * time.Minute)
		require.Empty(t, w.allLanes())
		require.EqualValues(t, 50, w.Stats().Spent)
		require.NoError(t, w.Limiter("t/1").Wait(t.Context()))
		s.end(t, w)
	})
}

func TestSentIsTheInstantOfTheSpend(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [1/1s]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		var last time.Time
		for range 5 {
			h, err := w.Limiter("k").Acquire(t.Context(), 1)
			require.NoError(t, err)
			require.WithinDuration(t, time.Now(), h.Sent(), time.Microsecond)
			if !last.IsZero() {
				require.GreaterOrEqual(t, h.Sent().Sub(last), time.Second)
			}
			last = h.Sent()
			time.Sleep(100 * time.Millisecond)
			h.Finish()
		}
		s.end(t, w)
	})
}

func TestACallerThatWaitsForLongAsksOnceASecond(t *testing.T) {
	bubble(t, "limits: [{key: k, rules: [1/1h]}]", func(t *testing.T, s *scripted) {
		w := s.start(t, "w")
		require.NoError(t, w.Limiter("k").Wait(t.Context()))
		time.Sleep(2 * time.Second)
		asked, begun := s.asked.Load(), time.Now()
		require.NoError(t, w.Limiter("k").Wait(t.Context()))
		took := time.Since(begun)
		require.Greater(t, took, 59*time.Minute)
		require.LessOrEqual(t, s.asked.Load()-asked, int64(took/time.Second)+2)
		s.end(t, w)
	})
}

func TestConfigsSayWhichRelationDoesNotHold(t *testing.T) {
	cfg := DefaultConfig()
	require.NoError(t, cfg.Validate())
	cfg.PauseLimit = cfg.Heartbeat
	require.ErrorContains(t, cfg.Validate(), "1s")
	_, err := New(nil, cfg)
	require.Error(t, err)
	pool := DefaultPoolConfig()
	pool.BackoffMax = pool.BackoffMin / 2
	require.ErrorContains(t, pool.Validate(), "12.5ms")
}
