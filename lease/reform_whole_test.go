package lease

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestWholeLedgerHoldsUnderPoliciesThatChange plays the same holders while the policy
// changes at random and other ledgers take over from the records, some of which were
// written under policies before: limits rise and fall, rules and whole prefixes come and
// go, plans are given and taken. What holds after every turn holds here.
func TestWholeLedgerHoldsUnderPoliciesThatChange(t *testing.T) {
	seeds := uint64(60)
	if os.Getenv("RATION_PROOF") == "1" {
		seeds = 10_000
	}
	playAll(t, seeds, func(seed uint64) error { return newReform(seed).play(300) })
}

// reform is a chance whose policy changes.
type reform struct {
	*chance
	records map[Key]Record
	policy  PolicyRecord
}

func newReform(seed uint64) *reform {
	r := &reform{chance: newChance(seed), records: map[Key]Record{}}
	config := r.ledger.config
	config.Unmirrored = false
	r.ledger = NewLedger(anyPolicy(r.Rand), config)
	r.ledger.Start(Start{Epoch: 1, Instant: r.now, Complete: true})
	r.taken, r.befalls = r.keep, r.befall
	return r
}

// keep is what a mirror does.
func (r *reform) keep(t *Turn) {
	if t.Policy != nil {
		r.policy = *t.Policy
	}
	for _, c := range t.Changes {
		record := r.records[c.Key].Clone()
		record.Key = c.Key
		if record.Change(c, 1); record.Empty() {
			delete(r.records, c.Key)
			continue
		}
		r.records[c.Key] = record
	}
}

// befall lets the policy change, or another ledger take over.
func (r *reform) befall() error {
	switch r.IntN(12) {
	case 0:
		r.ledger.Change(anyPolicy(r.Rand), 0)
	case 1:
		if err := r.takeOver(); err != nil {
			return fmt.Errorf("takeover: %w", err)
		}
	}
	return nil
}

// takeOver lets another ledger go on from the records. It grants no more than the one
// before would have, and holds as much.
func (r *reform) takeOver() error {
	if r.policy.Revision == 0 {
		return nil
	}
	p, err := ParsePolicy("mirror", []byte(r.policy.Text))
	if err != nil {
		return err
	}
	l := NewLedger(p, r.ledger.config)
	l.Start(Start{Epoch: 1, Instant: r.now, Revision: r.policy.Revision})
	for _, k := range sortedKeys(r.records) {
		l.Restore(r.records[k].Clone())
	}
	l.SetComplete()
	l.stats.PolicyChanges = 1 // there may be debt
	before := r.ledger
	r.ledger = l
	clear(r.open)
	due, some := before.timers.next()
	if err := r.turn(nil); err != nil || before.reaching || before.rewriting || some && due <= r.now {
		return err
	}
	for a := range before.accounts.All() {
		b, ok := l.accounts.Get(a.key)
		for i, rule := range a.contract.rules {
			was, at := a.window(i, r.now)
			switch {
			case !ok && !was.Idle(at):
				return fmt.Errorf("%s is forgotten", a.key)
			case !ok:
				continue
			}
			if is, _ := b.window(i, r.now); is.Held() != was.Held() || is.Free(at) > was.Free(at) {
				return fmt.Errorf("%s %s had %d held and %d free, and has %d and %d", a.key, rule.text, was.Held(), was.Free(at), is.Held(), is.Free(at))
			}
		}
	}
	return nil
}

func sortedKeys(records map[Key]Record) (keys []Key) {
	for k := range records {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// anyPolicy draws one, of few enough rules that the same come back.
func anyPolicy(random *rand.Rand) *Policy {
	some := func() string {
		var rules []string
		for _, form := range []string{"%d/1s", "%d/2s bucket", "%d/1m", "%d/1s unit=u", "%d/10s fixed", "%d/1s counter", "%d/1s pace", "%d concurrent"} {
			if random.IntN(3) == 0 {
				rules = append(rules, fmt.Sprintf(form, 2+random.IntN(11)))
			}
		}
		if rules == nil {
			return "[unlimited]"
		}
		return "[" + strings.Join(rules, ", ") + "]"
	}
	text := "unknown: " + []string{"refuse", "allow"}[random.IntN(2)] + "\nlimits:\n  - {key: never, rules: [1/1s]}\n"
	for _, key := range []string{"{a}", "{a}/{b}", "x/y", "{a}/{b}/{c}"} {
		if random.IntN(3) > 0 {
			guard := time.Duration(random.IntN(2)) * 30 * time.Millisecond
			rules := some()
			shadow := random.IntN(4) == 0 && !strings.Contains(rules, "concurrent")
			text += fmt.Sprintf("  - {key: %q, rules: %s, guard: %v, shadow: %v}\n", key, rules, guard, shadow)
		}
	}
	text += "plans: {p: {rules: " + some() + "}, q: {rules: " + some() + "}}\nassign:\n  never: p\n"
	for _, key := range []string{"{a}", "x", "x/{b}"} {
		if random.IntN(3) == 0 {
			text += fmt.Sprintf("  %q: %s\n", key, []string{"p", "q"}[random.IntN(2)])
		}
	}
	p, err := ParsePolicy("any", []byte(text))
	if err != nil {
		panic(err)
	}
	return p
}
