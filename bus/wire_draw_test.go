package bus

import (
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"ration/algo"
	"ration/lease"
)

// draw makes messages at random, leaning to the edges.
type draw struct{ *rand.Rand }

func (d draw) number() int64 {
	return []int64{0, 1, 7, maxNumber, d.Int64N(maxNumber)}[d.IntN(5)]
}

func (d draw) duration() time.Duration {
	return time.Duration([]int64{0, 1, 999, 1e3, 1e6, 1e9, 15e8, math.MaxInt64, d.Int64()}[d.IntN(9)])
}

func (d draw) holder() lease.Holder {
	names := []string{"a", "a.b", "a/b", "shell 1", "é\u2028", "\"\\", "\x01\x7f", strings.Repeat("n", maxNameLen)}
	return lease.Holder{Name: names[d.IntN(len(names))], Incarnation: []uint64{0, 1, math.MaxUint64, d.Uint64()}[d.IntN(4)]}
}

func (d draw) id() lease.ID {
	return lease.ID{Holder: d.holder(), Seq: []uint64{0, 1, math.MaxUint64, d.Uint64()}[d.IntN(4)]}
}

func (d draw) ids() (ids []lease.ID) {
	for range d.IntN(3) {
		ids = append(ids, d.id())
	}
	return ids
}

func (d draw) key() lease.Key {
	return lease.Key(awkward[d.IntN(len(awkward))])
}

func (d draw) keys() (keys []lease.Key) {
	for range 1 + d.IntN(MaxKeys) {
		keys = append(keys, d.key())
	}
	return keys
}

func (d draw) amount() lease.Amount {
	return lease.Amount{Tokens: d.number(), Slots: d.number(), Units: d.units()}
}

// units are none as often as some.
func (d draw) units() lease.Units {
	amounts := map[string]int64{}
	for range d.IntN(2) * d.IntN(lease.MaxUnits+1) {
		names := []string{"tokens", "a", "z-9_", strings.Repeat("u", 32), string(rune('b' + d.IntN(20)))}
		amounts[names[d.IntN(len(names))]] = min(d.number(), algo.MaxLimit)
	}
	return lease.UnitsOf(amounts)
}

func (d draw) request() lease.Request {
	return lease.Request{
		ID: d.id(), Keys: d.keys(), Want: d.amount(), Need: d.amount(), Sent: d.duration(), Patience: d.duration(), Class: []string{"", "premium"}[d.IntN(2)],
	}
}

func (d draw) answer() lease.Answer {
	a := lease.Answer{
		ID: d.id(), Outcome: lease.Outcome(1 + d.IntN(4)), Granted: d.amount(), TokenTTL: d.duration(), SlotTTL: d.duration(),
		Waited: d.duration(), Epoch: lease.Epoch{Number: d.Uint64(), Mark: d.Uint64()},
		Terms: lease.Terms{Window: d.duration(), Spacing: d.duration(), Concurrent: d.IntN(2) == 0, Unlimited: d.IntN(2) == 0},
	}
	if d.IntN(2) == 0 {
		a.Terms.Bounded, a.Terms.Line = true, d.IntN(100)
	}
	if a.Outcome == lease.Refused {
		a.Refusal = lease.Refusal{Reason: lease.ErrTooLate, Rule: "10/1s", Plan: "free", Quota: true, Class: []string{"", "standard"}[d.IntN(2)], Wait: d.duration()}
		if d.IntN(3) == 0 {
			a.Refusal.Pause = &lease.Pause{Since: algo.Instant(d.Int64()), By: []string{"", "b"}[d.IntN(2)], Reason: []string{"", "\"ä\""}[d.IntN(2)]}
		}
		if d.IntN(2) == 0 {
			a.Refusal.Key = d.key()
		}
	}
	return a
}

func (d draw) report() lease.Report {
	r := lease.Report{Holder: d.holder(), Sent: d.duration(), Heartbeat: d.IntN(2) == 0, Goodbye: d.IntN(2) == 0}
	for range d.IntN(4) {
		c := lease.Count{ID: d.id(), Keys: d.keys(), Returned: d.number(), ReturnedUnits: d.units(), Freed: d.number(), Cut: d.number(), Over: d.number(), OverUnits: d.units()}
		for range d.IntN(3) {
			c.Points = append(c.Points, lease.Point{Count: d.number(), Age: d.duration(), Units: d.units()})
		}
		r.Counts = append(r.Counts, c)
	}
	for range d.IntN(3) {
		r.GivenUp = append(r.GivenUp, lease.GivenUp{ID: d.id(), Keys: d.keys()})
	}
	return r
}

func (d draw) reply() lease.Reply {
	r := lease.Reply{Epoch: lease.Epoch{Number: d.Uint64(), Mark: d.Uint64()}, Ended: d.ids(), Acknowledged: d.ids()}
	for range d.IntN(3) {
		r.Renewed = append(r.Renewed, lease.Renewal{ID: d.id(), SlotTTL: d.duration()})
	}
	return r
}
