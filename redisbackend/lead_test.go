package redisbackend_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/lease"
	"ration/redisbackend"
)

// post is a coordinator that campaigns for a seat in Redis.
type post struct {
	mirror *mortal
	log    *logged
	cfg    coordinator.Config
	led    chan *coordinator.Leader
	leader *coordinator.Leader
	end    func()
}

// mortal is a mirror whose coordinator can die: then it does nothing any more.
type mortal struct {
	*redisbackend.Mirror
	dead atomic.Bool
}

var errDead = errors.New("dead")

func (m *mortal) Apply(ctx context.Context, t *lease.Turn) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Mirror.Apply(ctx, t)
}

func (m *mortal) Renew(ctx context.Context, e lease.Epoch, p lease.Pulse) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Mirror.Renew(ctx, e, p)
}

func (m *mortal) Resign(ctx context.Context, e lease.Epoch) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Mirror.Resign(ctx, e)
}

// stand starts a coordinator, which ends with the test.
func stand(t *testing.T, mirror *redisbackend.Mirror, policy string, change ...func(*coordinator.Config)) *post {
	t.Helper()
	p, err := lease.ParsePolicy("test.yaml", []byte(policy))
	require.NoError(t, err)
	x := &post{mirror: &mortal{Mirror: mirror}, log: &logged{}, led: make(chan *coordinator.Leader, 64)}
	x.cfg = coordinator.DefaultConfig(p)
	x.cfg.Mirror, x.cfg.Elector = x.mirror, x.mirror
	x.cfg.Log = slog.New(slog.NewTextHandler(x.log, nil))
	for _, f := range change {
		f(&x.cfg)
	}
	c, err := coordinator.New(x.cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			x.led <- l
			<-ctx.Done()
			return nil
		})
	}()
	x.end = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(x.end)
	return x
}

// leads waits until the coordinator leads.
func (x *post) leads(t *testing.T) *coordinator.Leader {
	t.Helper()
	select {
	case x.leader = <-x.led:
		return x.leader
	case <-bounded(t).Done():
		t.Fatalf("it does not lead; it says:\n%s", x.log)
		return nil
	}
}

// die lets it end as kill -9 would: nothing is given up.
func (x *post) die() {
	x.mirror.dead.Store(true)
	x.end()
}

// lead starts a coordinator and waits until it leads.
func lead(t *testing.T, mirror *redisbackend.Mirror, policy string, change ...func(*coordinator.Config)) *post {
	t.Helper()
	x := stand(t, mirror, policy, change...)
	x.leads(t)
	return x
}

// logged keeps what is logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) count(text string) int { return strings.Count(l.String(), text) }

// asking is the requests of one holder.
type asking struct {
	holder lease.Holder
	seq    uint64
}

func newAsking(name string) *asking {
	return &asking{holder: lease.Holder{Name: name, Incarnation: 1}}
}

func (a *asking) request(patience time.Duration, keys ...lease.Key) lease.Request {
	a.seq++
	one := lease.Amount{Tokens: 1}
	return lease.Request{ID: lease.ID{Holder: a.holder, Seq: a.seq}, Keys: keys, Want: one, Need: one, Sent: time.Duration(a.seq) * time.Hour, Patience: patience}
}

// answered gives the answer to a request that does not wait. Where the mirror is slow it
// is asked again under the same id.
func answered(t *testing.T, l *coordinator.Leader, r lease.Request) lease.Answer {
	t.Helper()
	for {
		answer, err := l.Acquire(bounded(t), r)
		if errors.Is(err, lease.ErrMirrorAway) {
			r.Sent++
			continue
		}
		require.NoError(t, err)
		return answer
	}
}

// takes asks for one token until there is an answer, and says whether it was granted.
func (a *asking) takes(t *testing.T, l *coordinator.Leader, key lease.Key) bool {
	t.Helper()
	granted, err := a.try(bounded(t), l, key)
	require.NoError(t, err)
	return granted
}

// try is takes on any goroutine. Copies carry the same id, until that is over because its
// grant came too late.
func (a *asking) try(ctx context.Context, l *coordinator.Leader, key lease.Key) (granted bool, err error) {
	r := a.request(0, key)
	for {
		answer, err := l.Acquire(ctx, r)
		switch {
		case errors.Is(err, lease.ErrMirrorAway):
			r.Sent++
		case err != nil:
			return false, err
		case answer.Outcome == lease.Ended:
			r = a.request(0, key)
		case answer.Outcome == lease.Granted, answer.Outcome == lease.Refused:
			return answer.Outcome == lease.Granted, nil
		default:
			return false, fmt.Errorf("outcome %d of a request that does not wait", answer.Outcome)
		}
	}
}

// many is how many of so many single tokens are granted.
func (a *asking) many(t *testing.T, l *coordinator.Leader, key lease.Key, times int) (granted int) {
	t.Helper()
	for range times {
		if a.takes(t, l, key) {
			granted++
		}
	}
	return granted
}
