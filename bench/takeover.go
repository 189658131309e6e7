package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ration/algo"
	"ration/bench/measure"
	"ration/bench/server"
	"ration/coordinator"
	"ration/lease"
	"ration/redisbackend"
)

const takenPolicy = `limits: [{key: "{account}", rules: [100/1h]}]`

// takeover counts what a new leader asks of Redis up to its first grant, where that has
// few keys and where it has many, and times it. What is loaded in the background is
// timed with it, since it may be in the way, and not counted.
func takeover(bounds *measure.Bounds) error {
	few, err := takeovers(1_000)
	if err != nil {
		return err
	}
	many, err := takeovers(1_000_000)
	if err != nil {
		return err
	}
	fmt.Print("\nfrom the campaign to the first grant of a new leader\n")
	for _, t := range []taken{few, many} {
		fmt.Printf("  %9d keys %8.2f ms   %s\n", t.keys, t.ms, t.commands())
	}
	bounds.AtMost("takeover-commands-that-differ", float64(few.differ(many)), 0)
	return nil
}

// taken is what takeovers of a mirror with so many keys have cost.
type taken struct {
	keys  int
	calls map[string]int64
	ms    float64
}

// differ counts the commands that one of the two was asked more often than the other.
func (t taken) differ(other taken) (n int) {
	all := maps.Clone(t.calls)
	maps.Copy(all, other.calls)
	for name := range all {
		if t.calls[name] != other.calls[name] {
			n++
		}
	}
	return n
}

func (t taken) commands() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(t.calls)) {
		all = append(all, fmt.Sprintf("%s %d", name, t.calls[name]))
	}
	return strings.Join(all, ", ")
}

// takeovers fills a mirror and lets new leaders take it over, one after the other.
func takeovers(keys int) (t taken, err error) {
	ctx := context.Background()
	r, err := server.StartRedis()
	if err != nil {
		return t, err
	}
	defer r.End()
	redis, err := openMirrors(r)
	if err != nil {
		return t, err
	}
	defer redis.Close()
	if err := fill(ctx, redis.Mirror("bench", 0), keys); err != nil {
		return t, fmt.Errorf("filling a mirror: %w", err)
	}
	t.keys = keys
	var times []float64
	const rounds = 15
	for range rounds {
		began := time.Now()
		mirror := redis.Mirror("bench", 0)
		err := lead(ctx, mirror, mirror, func() error {
			times = append(times, float64(time.Since(began))/1e6)
			return nil
		})
		if err != nil {
			return t, err
		}
	}
	t.ms = measure.Median(times)
	for range rounds {
		if err := r.Client.ConfigResetStat(ctx).Err(); err != nil {
			return t, err
		}
		mirror := redis.Mirror("bench", 0)
		err := lead(ctx, unlisted{mirror}, mirror, func() error {
			stats, err := r.Stats(ctx)
			// A request that came a turn later cost another turn, and says nothing of the keys.
			if calls := asked(stats); t.calls == nil || total(calls) < total(t.calls) {
				t.calls = calls
			}
			return err
		})
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// asked leaves out what keeps connections, and what the benchmark itself asks.
func asked(stats map[string]server.Stat) map[string]int64 {
	calls := map[string]int64{}
	for name, s := range stats {
		command, _, _ := strings.Cut(name, "|")
		if !slices.Contains([]string{"auth", "client", "config", "hello", "ping", "select"}, command) {
			calls[name] = s.Calls
		}
	}
	return calls
}

func total(calls map[string]int64) (n int64) {
	for _, c := range calls {
		n += c
	}
	return n
}

// unlisted is a mirror that tells of no keys, so that none are loaded but those that are
// asked for.
type unlisted struct{ lease.Mirror }

func (unlisted) Keys(_ context.Context, _ lease.Epoch, from string) ([]lease.Key, string, error) {
	return nil, from + "-", nil
}

// lead takes the seat, has one lease granted, and gives the seat up.
func lead(ctx context.Context, mirror lease.Mirror, elector lease.Elector, granted func() error) error {
	policy, err := lease.ParsePolicy("bench", []byte(takenPolicy))
	if err != nil {
		return err
	}
	config := coordinator.DefaultConfig(policy)
	config.Mirror, config.Elector = mirror, elector
	config.RenewEvery, config.Seat.TTL = time.Minute, 5*time.Minute // nothing is renewed meanwhile
	c, err := coordinator.New(config)
	if err != nil {
		return err
	}
	return c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
		answer, err := l.Acquire(ctx, lease.Request{
			ID:       lease.ID{Holder: lease.Holder{Name: "bench", Incarnation: l.Epoch().Mark}, Seq: 1},
			Keys:     []lease.Key{keyOf(500)},
			Want:     lease.Amount{Tokens: 1},
			Need:     lease.Amount{Tokens: 1},
			Sent:     time.Second,
			Patience: patience,
		})
		switch {
		case err != nil:
			return err
		case answer.Outcome != lease.Granted:
			return fmt.Errorf("bench: the new leader grants nothing: %+v", answer)
		}
		return granted()
	})
}

func keyOf(i int) lease.Key { return lease.Key(fmt.Sprintf("account-%d", i)) }

// fill records that something was spent just now of so many keys, and leaves the seat.
func fill(ctx context.Context, mirror *redisbackend.Mirror, keys int) error {
	seen, err := mirror.Look(ctx)
	if err != nil {
		return err
	}
	now := algo.Instant(time.Now().UnixNano())
	seat := lease.Seat{Epoch: lease.Epoch{Number: 1}, Partitions: 1, Run: seen.Running, Pulse: lease.Pulse{Instant: now, Wall: now}}
	if err := mirror.Campaign(ctx, seen, seat); err != nil {
		return err
	}
	const together = 1000
	turn := &lease.Turn{Epoch: seat.Epoch, Instant: now, Wall: now}
	for i := range keys {
		turn.Changes = append(turn.Changes, lease.Change{Key: keyOf(i), Keep: 48 * time.Hour, Windows: []lease.WindowRecord{{
			Rule:  "100/1h",
			State: algo.State{Seen: now, Spent: 1, Marks: []algo.Mark{{At: now, N: 1}}},
		}}})
		if len(turn.Changes) < together && i+1 < keys {
			continue
		}
		turn.Seq++
		if err := mirror.Apply(ctx, turn); err != nil {
			return err
		}
		turn.Changes = turn.Changes[:0]
	}
	return mirror.Resign(ctx, seat.Epoch)
}
