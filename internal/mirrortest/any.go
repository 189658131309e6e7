package mirrortest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"ration/algo"
	"ration/lease"
)

func anyKey(random *rand.Rand) lease.Key {
	return lease.Key([]string{"a", "a/b", "a:b", "{a}", "a b\r\n", "\xff\x00", "ä/é", "*"}[random.IntN(8)])
}

func anyNumber(random *rand.Rand) int64 {
	switch random.IntN(4) {
	case 0:
		return 0
	case 1:
		return math.MinInt64 + random.Int64N(2)
	case 2:
		return math.MaxInt64 - random.Int64N(2)
	}
	return random.Int64N(1000) - 500
}

// anyChange changes what there is, or makes something new.
func anyChange(random *rand.Rand, have map[lease.Key]lease.Record) lease.Change {
	c := lease.Change{Key: anyKey(random), Keep: time.Duration(1 + random.Int64N(math.MaxInt64-1))}
	switch random.IntN(8) {
	case 0:
		return lease.Change{Key: c.Key, Gone: true}
	case 1:
		c.Whole = true
	case 2:
		c.Stale, c.Since = true, uint64(random.IntN(2))
	}
	before := have[c.Key]
	for _, rule := range []string{"10/1s", "500/1m unit=tokens", "4 concurrent"} {
		if random.IntN(3) > 0 {
			c.Windows = append(c.Windows, anyWindow(random, rule, c.Whole, before))
		}
	}
	if len(c.Windows) == 0 {
		c.Windows = append(c.Windows, anyWindow(random, "1/1h", c.Whole, before))
	}
	for _, b := range before.Batches {
		switch random.IntN(4) {
		case 0:
			c.Batches = append(c.Batches, lease.Batch{ID: b.ID, Began: b.Began, Keys: b.Keys})
		case 1:
			again := anyBatch(random)
			again.ID, again.Began = b.ID, b.Began
			c.Batches = append(c.Batches, again)
		}
	}
	for range random.IntN(3) {
		c.Batches = append(c.Batches, anyBatch(random))
	}
	anyActs(random, &c, before)
	return c
}

// anyActs lets acts change some of the prefix, too.
func anyActs(random *rand.Rand, c *lease.Change, before lease.Record) {
	if c.Paused = random.IntN(3) == 0; c.Paused && random.IntN(3) > 0 {
		c.Pause = &lease.Pause{
			Since: algo.Instant(anyNumber(random)), Until: algo.Instant(anyNumber(random)),
			By: []string{"", "ä \"b\"", " "}[random.IntN(3)], Reason: []string{"", "so: \\ it \u00a0is", " x "}[random.IntN(3)],
		}
	}
	for _, charge := range before.Charges {
		if !c.Whole && random.IntN(4) == 0 {
			c.Charges = append(c.Charges, lease.ChargeRecord{ID: charge.ID})
		}
	}
	for range random.IntN(3) {
		id := fmt.Sprintf("id-%d:._", random.IntN(9))
		if !slices.ContainsFunc(c.Charges, func(have lease.ChargeRecord) bool { return have.ID == id }) {
			c.Charges = append(c.Charges, lease.ChargeRecord{
				ID: id, N: 1 + random.Int64N(math.MaxInt64-1), Unit: []string{"", "images"}[random.IntN(2)], Until: 1 + algo.Instant(random.Int64N(math.MaxInt64-1)),
			})
		}
	}
}

func anyWindow(random *rand.Rand, rule string, whole bool, before lease.Record) lease.WindowRecord {
	w := lease.WindowRecord{Rule: rule, State: algo.State{
		Seen: algo.Instant(anyNumber(random)), Held: anyNumber(random), Spent: anyNumber(random), Own: anyNumber(random),
	}}
	dates := map[algo.Instant]bool{}
	for _, old := range before.Windows {
		for _, m := range old.State.Marks {
			if old.Rule == rule && !whole && random.IntN(2) == 0 {
				dates[m.At] = true
				w.State.Marks = append(w.State.Marks, algo.Mark{At: m.At, N: int64(random.IntN(2)) * anyNumber(random)})
			}
		}
	}
	for range random.IntN(4) * random.IntN(10) {
		if at := algo.Instant(anyNumber(random)); !dates[at] {
			dates[at] = true
			w.State.Marks = append(w.State.Marks, algo.Mark{At: at, N: 1 + random.Int64N(math.MaxInt64-1)})
		}
	}
	slices.SortFunc(w.State.Marks, func(a, b algo.Mark) int { return cmp.Compare(a.At, b.At) })
	return w
}

func anyBatch(random *rand.Rand) lease.Batch {
	id := lease.ID{Holder: lease.Holder{Name: fmt.Sprintf("w \"%d\"\xff", random.IntN(9)), Incarnation: random.Uint64()}, Seq: random.Uint64()}
	b := lease.Batch{ID: id, Began: algo.Instant(anyNumber(random)), Keys: []lease.Key{anyKey(random)}}
	for range random.IntN(3) {
		b.Keys = append(b.Keys, anyKey(random))
	}
	part := func() lease.Part {
		return lease.Part{Granted: anyNumber(random), Spent: anyNumber(random), Returned: anyNumber(random), Expires: algo.Instant(anyNumber(random))}
	}
	for i := range 1 + random.IntN(4) {
		le := lease.LeaseRecord{Seq: id.Seq + uint64(i), Tokens: part()}
		if random.IntN(2) == 0 {
			le.Slots = part()
		}
		for _, unit := range []string{"images", "tokens"}[:random.IntN(3)] {
			le.Units = append(le.Units, lease.UnitPart{Unit: unit, Part: part()})
		}
		b.Leases = append(b.Leases, le)
	}
	return b
}

// Sorted gives a record in an order, and with lists, that do not depend on how it came
// about.
func Sorted(r lease.Record) lease.Record {
	if len(r.Batches) == 0 {
		r.Batches = nil
	}
	if len(r.Charges) == 0 {
		r.Charges = nil
	}
	slices.SortFunc(r.Charges, func(a, b lease.ChargeRecord) int { return strings.Compare(a.ID, b.ID) })
	for i := range r.Windows {
		if st := &r.Windows[i].State; len(st.Marks) == 0 {
			st.Marks = nil
		}
	}
	slices.SortFunc(r.Windows, func(a, b lease.WindowRecord) int { return strings.Compare(a.Rule, b.Rule) })
	slices.SortFunc(r.Batches, func(a, b lease.Batch) int {
		return cmp.Or(strings.Compare(a.ID.String(), b.ID.String()), cmp.Compare(a.Began, b.Began))
	})
	return r
}
