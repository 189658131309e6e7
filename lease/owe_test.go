package lease

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

// TestWhatIsOwedIsRepaid plays at random while turns are not recorded, now and then and
// for a while: whenever nothing is owed any more, a ledger that is restored from the records
// has what the one that wrote them has, and there is no record of a key at rest.
func TestWhatIsOwedIsRepaid(t *testing.T) {
	repaid, gone := 0, 0
	for seed := range uint64(60) {
		c := newChance(seed)
		c.ledger.config.Unmirrored = false
		records, written := map[Key]Record{}, map[Key]bool{}
		away := false
		c.taken = func(turn *Turn) {
			for _, change := range turn.Changes {
				r := records[change.Key]
				r.Key = change.Key
				if r.Change(change, 1); r.Empty() {
					delete(records, change.Key)
				} else {
					records[change.Key] = r
				}
				if written[change.Key] = true; change.Gone {
					delete(written, change.Key)
					gone++
				}
			}
			require.LessOrEqual(t, len(c.ledger.owed.list), c.ledger.accounts.Len()+len(written), "seed %d", seed)
			switch {
			case away:
				require.Empty(t, turn.Changes)
				require.True(t, turn.Behind)
			case !turn.Behind:
				repaid++
				require.NoError(t, restores(c.ledger, records, turn.Instant), "seed %d", seed)
			}
			switch c.IntN(12) {
			case 0:
				away = true
				c.ledger.Owe()
			case 1, 2:
				away = false
				c.ledger.Repay()
			}
		}
		require.NoError(t, c.play(200), "seed %d", seed)
	}
	require.Positive(t, repaid)
	require.Positive(t, gone)
}

// restores says what a ledger that is restored from the records has otherwise.
func restores(l *Ledger, records map[Key]Record, now algo.Instant) error {
	other := NewLedger(l.policy, l.config)
	other.now = now
	var keys []Key
	for key := range records {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if a, ok := l.accounts.Get(key); !ok || !a.kept {
			return fmt.Errorf("there is a record of %q, which is at rest", key)
		}
		other.Restore(records[key].Clone())
	}
	for _, a := range l.order {
		b, ok := other.accounts.Get(a.key)
		switch idle := a.idle(now) || len(a.leases) == 0 && newAccount(now, a.key, a.contract).like(a, now); {
		case idle && !ok:
			continue // nobody but a waiter knows it
		case !ok:
			return fmt.Errorf("there is no record of %q", a.key)
		}
		want, got := a.status(now), b.status(now)
		want.Waiting, want.Classes, got.Classes = 0, nil, nil
		if !reflect.DeepEqual(want, got) {
			return fmt.Errorf("%q is %+v, and restored %+v", a.key, want, got)
		}
	}
	return nil
}

// like says that the windows of two accounts have the same free, held and spent.
func (a *account) like(b *account, now algo.Instant) bool {
	return reflect.DeepEqual(a.status(now).Windows, b.status(now).Windows)
}

// TestOwedIsBoundedByKeysNotByTime: keys that come and go while nothing is recorded are
// not owed; one that the mirror has is taken out of it.
func TestOwedIsBoundedByKeysNotByTime(t *testing.T) {
	p, err := ParsePolicy("test.yaml", []byte(`limits: [{key: "{k}", rules: [10/1s]}]`))
	require.NoError(t, err)
	l := NewLedger(p, DefaultConfig())
	now := algo.Instant(1_800_000_000_000_000_000)
	seq := uint64(0)
	ask := func(key Key) *Turn {
		seq++
		one := Amount{Tokens: 1}
		r := Request{ID: ID{Holder{"h", 1}, seq}, Keys: []Key{key}, Need: one, Want: one, Sent: time.Duration(now % 1e15)}
		return l.Turn(now, []Message{{Ticket: Ticket(seq), Arrived: now, Request: &r}})
	}
	recorded := ask("recorded")
	require.False(t, recorded.Behind)
	l.Owe()
	for i := range 100 {
		require.True(t, ask(Key(fmt.Sprint(i))).Behind)
		now = now.Add(2 * time.Minute)
	}
	for range 100 {
		now = now.Add(2 * time.Minute)
		l.Turn(now, nil)
	}
	require.Len(t, l.owed.list, 1)
	l.Repay()
	turn := l.Turn(now, nil)
	require.Equal(t, []Change{{Key: "recorded", Gone: true}}, turn.Changes)
	require.False(t, turn.Behind)
	require.Nil(t, l.owed.places)
}

// TestTurnThatIsNotRecordedIsOwed: what it changed is written back, whole, also where
// nothing has changed since.
func TestTurnThatIsNotRecordedIsOwed(t *testing.T) {
	p, err := ParsePolicy("test.yaml", []byte(`limits: [{key: "{k}", rules: [10/1h]}]`))
	require.NoError(t, err)
	l := NewLedger(p, DefaultConfig())
	now := algo.Instant(1_800_000_000_000_000_000)
	one := Amount{Tokens: 1}
	r := Request{ID: ID{Holder{"h", 1}, 1}, Keys: []Key{"k"}, Need: one, Want: one}
	lost := l.Turn(now, []Message{{Ticket: 1, Arrived: now, Request: &r}})
	l.Owe()
	l.Turn(now.Add(time.Second), nil)
	l.OweTurn(lost)
	l.Repay()
	turn := l.Turn(now.Add(2*time.Second), nil)
	require.Len(t, turn.Changes, 1)
	require.True(t, turn.Changes[0].Whole)
	require.False(t, turn.Behind)
}
