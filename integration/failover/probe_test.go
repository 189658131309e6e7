package failover

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"ration/bus"
	"ration/lease"
)

// probe asks for a token of a key that never binds, every 5 ms, whatever became of what
// it asked before, and notes when it is granted.
type probe struct {
	client *bus.Client
	began  time.Time
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	grants []time.Duration // since it began
}

const probeEvery = 5 * time.Millisecond

func startProbe(w *world) *probe {
	nc, err := bus.Connect(w.nats, bus.ConnectConfig{Name: "probe", Wait: 10 * time.Second})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &probe{client: bus.NewClient(nc, bus.ClientConfig{}), began: time.Now(), stop: stop}
	p.done.Go(func() { p.ask(ctx) })
	w.t.Cleanup(func() {
		stop()
		p.done.Wait()
		nc.Close()
	})
	return p
}

func (p *probe) ask(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	holder := lease.Holder{Name: "probe", Incarnation: rand.Uint64()}
	for seq := uint64(1); ; seq++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.done.Go(func() {
			within, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
			defer cancel()
			one := lease.Amount{Tokens: 1}
			a, err := p.client.Acquire(within, lease.Request{
				ID: lease.ID{Holder: holder, Seq: seq}, Keys: []lease.Key{"probe"},
				Want: one, Need: one, Sent: time.Since(p.began), Patience: 500 * time.Millisecond,
			})
			if err == nil && a.Outcome == lease.Granted {
				p.mu.Lock()
				p.grants = append(p.grants, time.Since(p.began))
				p.mu.Unlock()
			}
		})
	}
}

// gap is the longest time without a grant that began after from and ended before to, or
// includes them.
func (p *probe) gap(from, to time.Time) time.Duration {
	p.mu.Lock()
	grants := slices.Clone(p.grants)
	p.mu.Unlock()
	slices.Sort(grants)
	begin, end := from.Sub(p.began), to.Sub(p.began)
	var longest time.Duration
	last := begin
	for _, at := range grants {
		if at < begin {
			continue
		}
		if at > end {
			break
		}
		longest = max(longest, at-last)
		last = at
	}
	return max(longest, end-last)
}

// since tells whether there was a grant since then.
func (p *probe) since(at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.grants) > 0 && p.grants[len(p.grants)-1] > at.Sub(p.began)
}
