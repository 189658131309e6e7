package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"ration/integration/oracle"
	"ration/lease"
)

// judge gives what broke the contract: of the calls as they were released, and of
// the rates as an upstream saw them, whose clock may be behind and whom one call
// may reach later than another, both by the guard.
func (w *World) judge(seed uint64, c Contract, keys []lease.Key) []oracle.Violation {
	var found []oracle.Violation
	for _, l := range c.limits(keys) {
		if l.rules == "" {
			continue
		}
		rules := oracle.MustRules(l.rules)
		spends := slices.DeleteFunc(slices.Clone(w.spends), func(s oracle.Spend) bool {
			return s.Cost == 0 && s.Units == nil || !l.counts(lease.Key(s.Key))
		})
		found = append(found, oracle.Violations(spends, rules)...)
		spends = append(spends, oracle.Under(w.charges, string(l.prefix))...)
		found = append(found, oracle.Violations(spends, oracle.Rates(rules))...)
		if c.Guard == 0 {
			continue
		}
		late := arrivals(rand.New(rand.NewPCG(seed, 2)), spends, c.Guard)
		found = append(found, oracle.Violations(late, oracle.Rates(rules))...)
		found = append(found, oracle.Violations(moved(late, -c.Guard), oracle.Rates(rules))...)
	}
	return found
}

// arrivals lets each call arrive some time after it was released, up to guard.
func arrivals(rnd *rand.Rand, spends []oracle.Spend, guard time.Duration) []oracle.Spend {
	late := slices.Clone(spends)
	for i := range late {
		switch rnd.IntN(3) {
		case 0:
			late[i].At += int64(guard)
		case 1:
			late[i].At += rnd.Int64N(int64(guard) + 1)
		}
	}
	return late
}

func moved(spends []oracle.Spend, d time.Duration) []oracle.Spend {
	all := slices.Clone(spends)
	for i := range all {
		all[i].At += int64(d)
	}
	return all
}
