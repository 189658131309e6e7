package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ration/algo"
	"ration/bench/measure"
	"ration/bench/server"
	"ration/coordinator"
	"ration/lease"
	"ration/redisbackend"
)

// most is how many marks a window keeps one by one.
const most = 1024

// marks measures what Redis spends on a turn of a key whose window has one mark, and
// of one whose window is full of them. The turns are alike: a spend is told, and its
// mark comes as the oldest goes.
func marks(bounds *measure.Bounds) error {
	ctx := context.Background()
	r, err := server.StartRedis()
	if err != nil {
		return err
	}
	defer r.End()
	redis, err := openMirrors(r)
	if err != nil {
		return err
	}
	defer redis.Close()
	few, err := newCourse(ctx, redis, "few", 2*time.Second)
	if err != nil {
		return err
	}
	full, err := newCourse(ctx, redis, "full", time.Second/most)
	if err != nil {
		return err
	}
	const rounds, turns = 15, 500
	cost := map[*course][]float64{}
	for round := range 1 + rounds {
		for _, c := range []*course{few, full} {
			each, err := c.cost(ctx, r, turns*max(1, 4-4*round)) // the first time it is filled
			if err != nil {
				return err
			}
			if round > 0 {
				cost[c] = append(cost[c], each)
			}
		}
	}
	fmt.Print("\nwhat Redis spends on a turn\n")
	for _, c := range []*course{few, full} {
		n, err := c.marks(ctx, r)
		if err != nil {
			return err
		}
		fmt.Printf("  %5d marks %8.2f us\n", n, measure.Median(cost[c]))
		if c == full && n < most {
			return fmt.Errorf("bench: a full window has %d marks", n)
		}
	}
	bounds.AtMost("apply-marks", measure.Median(cost[full])/measure.Median(cost[few]), 1.3)
	return nil
}

// openMirrors waits for an answer for longer than a coordinator would: nobody waits here.
func openMirrors(r *server.Redis) (*redisbackend.Server, error) {
	config := redisbackend.DefaultConfig()
	config.Wait = 10 * time.Second
	return redisbackend.Open(r.URL, config)
}

// course is a ledger whose turns come at equal steps of its own time, and a mirror of
// them.
type course struct {
	*coordinator.Course
	ledger *lease.Ledger
	mirror *redisbackend.Mirror
	cell   string
	step   time.Duration
	now    algo.Instant
	seq    uint64
}

func newCourse(ctx context.Context, redis *redisbackend.Server, cell string, step time.Duration) (*course, error) {
	policy, err := lease.ParsePolicy("bench", []byte(onePolicy))
	if err != nil {
		return nil, err
	}
	c := &course{ledger: lease.NewLedger(policy, lease.DefaultConfig()), mirror: redis.Mirror(cell, 0), cell: cell, step: step, now: 1}
	seat := lease.Seat{Epoch: lease.Epoch{Number: 1}, Partitions: 1, Fresh: true}
	seat.Pulse.Instant = c.now
	c.Course = coordinator.NewCourse(seat, c.ledger, 0)
	return c, c.mirror.Campaign(ctx, lease.Seat{}, seat)
}

// cost is how many microseconds Redis takes for a turn, over so many.
func (c *course) cost(ctx context.Context, r *server.Redis, turns int) (float64, error) {
	if err := r.Client.ConfigResetStat(ctx).Err(); err != nil {
		return 0, err
	}
	for range turns {
		if err := c.turn(ctx); err != nil {
			return 0, err
		}
	}
	stats, err := r.Stats(ctx)
	if err != nil {
		return 0, err
	}
	s := stats["evalsha"]
	if s.Calls < int64(turns) {
		return 0, fmt.Errorf("bench: %d scripts for %d turns", s.Calls, turns)
	}
	return float64(s.Spent.Microseconds()) / float64(s.Calls), nil
}

// turn grants a lease, and tells that the one before is spent.
func (c *course) turn(ctx context.Context) error {
	c.now = c.now.Add(c.step)
	c.seq++
	holder := lease.Holder{Name: "bench", Incarnation: 1}
	sent := time.Duration(c.now)
	in := []lease.Message{{Ticket: lease.Ticket(2 * c.seq), Arrived: c.now, Request: &lease.Request{
		ID:   lease.ID{Holder: holder, Seq: c.seq},
		Keys: []lease.Key{"k"}, Want: lease.Amount{Tokens: 1}, Need: lease.Amount{Tokens: 1}, Sent: sent,
	}}}
	if c.seq > 1 {
		in = append(in, lease.Message{Ticket: lease.Ticket(2*c.seq + 1), Arrived: c.now, Report: &lease.Report{
			Holder: holder, Sent: sent,
			Counts: []lease.Count{{ID: lease.ID{Holder: holder, Seq: c.seq - 1}, Keys: []lease.Key{"k"}, Points: []lease.Point{{Count: 1}}}},
		}})
	}
	turn := c.ledger.Turn(c.now, in)
	if len(turn.Answers) != 1 || turn.Answers[0].Answer.Outcome != lease.Granted {
		return fmt.Errorf("bench: turn %d grants nothing: %+v", c.seq, turn.Answers)
	}
	c.Number(c.ledger, turn, c.now)
	if err := c.mirror.Apply(ctx, turn); err != nil {
		return err
	}
	c.Applied(c.ledger, turn)
	c.ledger.Done(turn)
	return nil
}

// marks counts those that Redis has.
func (c *course) marks(ctx context.Context, r *server.Redis) (n int, err error) {
	fields, err := r.Client.HKeys(ctx, fmt.Sprintf("{ration:%s:0}:k:k", c.cell)).Result()
	for _, f := range fields {
		if strings.HasPrefix(f, "m ") {
			n++
		}
	}
	return n, err
}
