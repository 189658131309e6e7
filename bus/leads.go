package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"ration/lease"
)

// vacancy is how long a client waits, where nobody leads, for somebody to say that it
// does now: less than what anybody may be left without an answer for.
const vacancy = 70 * time.Millisecond

// tries is how often the same bytes are sent again, because of what is heard meanwhile:
// they are the same request, and its holder counts from when they were sent first.
const tries = 3

// leads hears leaders announce themselves, so that who waits for the one before asks at
// once, or within the time that a leader of many holders says. It is a hint: whoever
// misses it asks again by itself.
type leads struct {
	mu     sync.Mutex
	heard  map[int]*announcements // by partition
	closed bool
}

type announcements struct {
	sub  *nats.Subscription
	next chan struct{} // closed at the next one
	// spread is the time over which to ask the last one.
	spread time.Duration
}

// errNewLeader says that the leader that was asked leads no more.
var errNewLeader = fmt.Errorf("%w: a new leader has announced itself; ask again", lease.ErrNoCoordinator)

// news gives what is closed when a leader of the partition announces itself. From the
// first call on, who waits for an answer of the partition is then told to ask again.
func (c *Client) news(n int) <-chan struct{} {
	l := &c.leads
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.heard[n]
	if a == nil {
		a = &announcements{next: make(chan struct{})}
		if l.heard == nil {
			l.heard = map[int]*announcements{}
		}
		l.heard[n] = a
	}
	if a.sub == nil && !l.closed {
		sub, err := c.nc.Subscribe(leadsSubject(c.cfg.Cell, n), func(m *nats.Msg) { c.announced(n, spreadOf(m.Data)) })
		if err == nil { // else it goes without
			a.sub = sub
		}
	}
	return a.next
}

// spreadOf reads the time over which to ask a leader that announces itself. Without one,
// or with one that makes no sense, it is asked at once.
func spreadOf(body []byte) time.Duration {
	var p pingMessage
	if json.Unmarshal(body, &p) != nil {
		return 0
	}
	d, err := time.ParseDuration(p.Spread)
	if err != nil || d < 0 {
		return 0
	}
	return min(d, time.Second)
}

// pause waits a moment of the time over which to ask the leader of the partition, or for
// the end of ctx.
func (c *Client) pause(ctx context.Context, n int) {
	c.leads.mu.Lock()
	spread := c.leads.heard[n].spread
	c.leads.mu.Unlock()
	if spread == 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(spread)):
	}
}

func (c *Client) announced(n int, spread time.Duration) {
	c.leads.mu.Lock()
	a := c.leads.heard[n]
	a.spread = spread
	close(a.next)
	a.next = make(chan struct{})
	c.leads.mu.Unlock()
	of := partitionSubject(c.cfg.Cell, n) + "."
	c.watch.each(errNewLeader, func(who *wait) bool { return who.asks && strings.HasPrefix(who.subject, of) })
}

// Close ends what the client listens to. Calls that are under way go on.
func (c *Client) Close() (err error) {
	c.leads.mu.Lock()
	defer c.leads.mu.Unlock()
	c.leads.closed = true
	for _, a := range c.leads.heard {
		if a.sub == nil {
			continue
		}
		if e := a.sub.Unsubscribe(); !errors.Is(e, nats.ErrConnectionClosed) {
			err = errors.Join(err, e)
		}
		a.sub = nil
	}
	return err
}

// toLeader asks the leader of a tenant's partition. A client that is wrong about how
// many there are is told so, and asks there. Where nobody leads, a leader is waited for a
// little.
func (c *Client) toLeader(ctx context.Context, verb, tenant string, body []byte) ([]byte, error) {
	if c.watch == nil {
		return nil, closed()
	}
	token := Token(tenant)
	for try := 0; ; try++ {
		n := Partition(token, int(c.partitions.Load()))
		news := c.news(n)
		answer, err := c.ask(ctx, partitionSubject(c.cfg.Cell, n)+"."+verb+"."+token, body)
		var elsewhere *partitionError
		switch {
		case errors.Is(err, errNewLeader) && try < tries:
			c.pause(ctx, n)
			continue
		case errors.Is(err, errNobody) && try < tries:
			switch answer, again := c.vacant(ctx, n, news, verb, token, body); {
			case again:
				c.pause(ctx, n)
				continue
			case answer != nil:
				return answer, nil
			}
			return nil, err
		case err != nil:
			return nil, err
		case try < tries && misdirected(answer) && errors.As(told(answer), &elsewhere):
			c.partitions.Store(int64(elsewhere.partitions))
			continue
		}
		return answer, nil
	}
}

// vacant waits a little where nobody leads partition n: again says that it is worth to
// ask again. Meanwhile it asks who leads the first partition, since the cell may have
// fewer than it had; the answer is that one's, unless that knows no better.
func (c *Client) vacant(ctx context.Context, n int, news <-chan struct{}, verb, token string, body []byte) (answer []byte, again bool) {
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithTimeout(ctx, vacancy)
	defer cancel()
	first := make(chan []byte, 1)
	if n != 0 {
		asking.Go(func() {
			if answer, err := c.ask(ctx, partitionSubject(c.cfg.Cell, 0)+"."+verb+"."+token, body); err == nil {
				first <- answer
			}
		})
	}
	for {
		select {
		case <-news:
			return nil, true
		case <-ctx.Done():
			return nil, false
		case answer := <-first:
			var elsewhere *partitionError
			if !misdirected(answer) || !errors.As(told(answer), &elsewhere) {
				return answer, false
			}
			if had := c.partitions.Swap(int64(elsewhere.partitions)); had != int64(elsewhere.partitions) {
				return nil, true
			}
		}
	}
}

// misdirected says that an answer may say that it is of another partition; to be sure it
// has to be read.
func misdirected(answer []byte) bool {
	return len(answer) < 512 && bytes.Contains(answer, []byte(`"wrong_partition"`))
}
