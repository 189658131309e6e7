package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/coordinator"
	"ration/lease"
)

const (
	// balanceEvery is how often it is looked at who leads how many partitions.
	balanceEvery = 100 * time.Millisecond
	// newcomerWait is how long a coordinator has to be well before it claims partitions that
	// another leads.
	newcomerWait = 10 * time.Second
)

// cell is what this coordinator does in each partition of its cell: it campaigns, leads,
// and has its share of them.
type cell struct {
	site  *site
	voice *cli.Voice
	link  *link
	admin *bus.Admin
	// all is what is said when it leads all partitions.
	all  func(coordinator.InForce) string
	file *policyFile
	hup  chan os.Signal // asks for the file to be taken

	began time.Time

	mu      sync.Mutex
	balance *coordinator.Balance
	led     int
	ends    bool // who is stopping claims nothing
}

// newCell makes a coordinator for each partition of the site. They listen for others where
// their state is not their own, and claim partitions of others after they were well for as
// long.
func newCell(c *serveCommand, s *site, state *kept, l *link, voice *cli.Voice, after time.Duration) (*cell, error) {
	id := strconv.FormatUint(rand.Uint64(), 36)
	made := &cell{
		site: s, voice: voice, link: l, began: time.Now(), file: s.file, hup: make(chan os.Signal, 1),
		balance: coordinator.NewBalance(coordinator.BalanceConfig{ID: id, After: after}),
	}
	made.admin = l.admin(bus.AdminConfig{Cell: s.cell, Partitions: len(s.parts), Name: s.name, Version: cli.Version(), Status: s.document})
	for _, p := range s.parts {
		config := coordinator.DefaultConfig(s.policy)
		config.Seat.Name, config.Seat.TTL, config.Seat.Lag, config.Seat.Cold = c.Name, c.SeatTTL, c.RedisLag, c.ColdStart
		config.Seat.Early = min(config.Seat.Early, c.SeatTTL)
		config.Seat.Partitions = len(s.parts)
		if config.Log = voice.Log; len(s.parts) > 1 {
			config.Log = voice.Log.With("partition", p.n)
		}
		state.config(&config, p.n)
		if s.standsBy {
			config.Hear = func(seat lease.Seat) coordinator.Heard { return made.hear(p, seat) }
			config.Yield = func() string { return made.yield(p) }
		}
		coord, err := coordinator.New(config)
		if p.coord.Store(coord); err == nil && s.standsBy { // who listens is asked at once
			p.ears, err = l.listen(bus.EarsConfig{
				Cell: s.cell, Partition: p.n, ID: id, Name: s.name, Every: config.LookEvery,
				Known: func() bus.Known { return made.known(p) },
			})
		}
		if err != nil {
			made.close()
			return nil, err
		}
	}
	return made, nil
}

// close ends the listening.
func (c *cell) close() {
	for _, p := range c.site.parts {
		if p.ears != nil {
			p.ears.Close()
		}
	}
}

// run campaigns for every partition and leads those that it wins, until ctx ends, or one
// of them finds what no waiting helps: then all are handed over. Nobody campaigns before
// it is known that the first partition's seat is of a cell of as many, so that two numbers
// of them never lead side by side.
func (c *cell) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range c.site.parts {
		g.Go(func() error {
			if p.n > 0 {
				select {
				case <-c.site.parts[0].coord.Load().Agreed():
				case <-ctx.Done():
					return nil
				}
			}
			return p.coord.Load().Run(ctx, func(ctx context.Context, l *coordinator.Leader) error { return c.serve(ctx, p, l) })
		})
	}
	g.Go(func() error {
		signal.Notify(c.hup, syscall.SIGHUP)
		defer signal.Stop(c.hup)
		c.file.watch(ctx, c.hup, c.voice, c.reform)
		return nil
	})
	g.Go(func() error {
		c.compare(ctx)
		return nil
	})
	if c.site.standsBy {
		g.Go(func() error {
			c.share(ctx)
			return nil
		})
	}
	return g.Wait()
}

// share looks at who leads which partitions, again and again until ctx ends.
func (c *cell) share(ctx context.Context) {
	tick := time.NewTicker(balanceEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		c.mu.Lock()
		c.ends = ctx.Err() != nil
		c.watch()
		c.mu.Unlock()
	}
}

// serve answers for a partition while it leads it.
func (c *cell) serve(ctx context.Context, p *part, l *coordinator.Leader) error {
	defer p.lead(l)()
	defer c.count(p, -1)
	log := c.voice.Log
	if len(c.site.parts) > 1 {
		log = log.With("partition", p.n)
	}
	return c.link.serve(ctx, bus.ServeConfig{
		Lessor:     l,
		Epoch:      l.Epoch,
		Spread:     l.Spread(),
		Cell:       c.site.cell,
		Partitions: len(c.site.parts),
		Partition:  p.n,
		Name:       c.site.name,
		Version:    cli.Version(),
		Status:     func(ctx context.Context, key lease.Key) (any, error) { return c.site.partition(ctx, p, key) },
		Admin:      c.admin,
		Apply:      func(ctx context.Context, p bus.Policy) (any, error) { return c.site.apply(ctx, l, p) },
		ResetClock: func(ctx context.Context) (any, error) { return c.site.resetClock(ctx, l, log) },
		Act:        func(ctx context.Context, a lease.Act) (any, error) { return c.site.act(ctx, l, a, log) },
		Recalls:    l.AllRecalls,
		Log:        c.voice.Log,
		Ready:      func() { c.count(p, 1) },
	})
}

// count notes that a partition is served from now on, or no more, and says what people
// wait for.
func (c *cell) count(p *part, by int) {
	if line := c.counted(p, by); line != "" {
		c.voice.Log.Info(line)
	}
}

// counted is count without the saying, which may take long: renewals need mu. It gives
// what is to be said.
func (c *cell) counted(p *part, by int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was := p.serving.Swap(by > 0); was == (by > 0) {
		return ""
	}
	c.led += by
	switch {
	case by < 0:
	case c.led == len(c.site.parts):
		return c.all(p.inForce())
	case c.site.standsBy:
		return fmt.Sprintf("%s leads partition %d of cell %s, %d of %d", c.site.name, p.n, c.site.cell, c.led, len(c.site.parts))
	}
	return ""
}

// known is what others are told.
func (c *cell) known(p *part) bus.Known {
	number, mirror, leads := p.coord.Load().Known()
	c.mu.Lock()
	defer c.mu.Unlock()
	return bus.Known{Number: number, Mirror: mirror, Leads: leads, Claims: c.balance.Claims(p.n)}
}

// hear gives what is heard of the leader of a seat, and of others.
func (c *cell) hear(p *part, s lease.Seat) coordinator.Heard {
	h := p.ears.Hear(s.Epoch)
	out := coordinator.Heard{Connected: h.Connected, Silent: h.Silent, Served: h.Served, Mute: !h.Silent && !h.Served}
	_, own, _ := p.coord.Load().Known()
	answers := p.ears.Hear(lease.Epoch{}).Served // who leads without a mirror for long serves nobody
	for _, o := range h.Others {
		out.Number = max(out.Number, o.Number)
		if o.Leads && answers {
			out.Led = max(out.Led, o.Number)
		}
		if own != 0 && o.Mirror != 0 && o.Mirror != own {
			out.Rivals = append(out.Rivals, coordinator.Rival{Name: "coordinator " + cli.Printable(o.Name, 60), Mirror: o.Mirror, Leads: o.Leads})
		}
	}
	if s.Vacant {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.watch() // a claim may be newer than the last look
		out.Left = c.balance.Left(p.n)
	}
	return out
}

// yield names the coordinator to which a partition is handed over, if any.
func (c *cell) yield(p *part) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	to, yields := c.balance.Yield(time.Since(c.began), p.n)
	if !yields {
		return ""
	}
	return "coordinator " + cli.Printable(to.Name, 60)
}

// watch looks at who leads which partitions. It is called with mu held.
func (c *cell) watch() {
	own := make([]bool, len(c.site.parts))
	well := !c.ends && c.site.connected()
	peers := map[string]*coordinator.Peer{}
	for n, p := range c.site.parts {
		_, _, own[n] = p.coord.Load().Known()
		h := p.ears.Hear(lease.Epoch{})
		well = well && h.Connected && p.coord.Load().Well()
		for _, o := range h.Others {
			peer := peers[o.ID]
			if peer == nil {
				peer = &coordinator.Peer{ID: o.ID, Name: o.Name}
				peers[o.ID] = peer
			}
			if o.Leads {
				peer.Leads = append(peer.Leads, n)
			}
			if o.Claims {
				peer.Claims = append(peer.Claims, n)
			}
		}
	}
	list := make([]coordinator.Peer, 0, len(peers))
	for _, id := range slices.Sorted(maps.Keys(peers)) {
		list = append(list, *peers[id])
	}
	c.balance.Watch(time.Since(c.began), own, well, list)
}
