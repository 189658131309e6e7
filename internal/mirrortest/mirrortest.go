package mirrortest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// Mirror is what is tested.
type Mirror interface {
	lease.Mirror
	lease.Elector
}

// Run tests mirrors; fresh gives an empty one each time.
func Run(t *testing.T, fresh func(t *testing.T) Mirror) {
	for name, test := range map[string]func(t *testing.T, m Mirror){
		"an empty mirror has no seat":                 empty,
		"a seat is won as it was seen":                won,
		"a seat says all that its leader wrote":       seat,
		"another epoch does nothing":                  fenced,
		"a vacant seat takes nothing":                 vacant,
		"turns are applied in order and once":         order,
		"the cell is divided one way":                 partitions,
		"records are given back to the last bit":      records,
		"all keys are found":                          keys,
		"a sound mirror is in no doubt":               sound,
		"the policy is in force beyond its leader":    policy,
		"a turn of many keys and leases is one thing": large,
	} {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

// Seat is the seat of an epoch of a cell of one partition.
func Seat(number uint64) lease.Seat {
	return lease.Seat{
		Epoch: lease.Epoch{Number: number, Mark: math.MaxUint64 - number}, Name: fmt.Sprintf("c %d/ä", number), Partitions: 1, Mirror: math.MaxUint64 - 7,
		Pulse: lease.Pulse{Beat: math.MaxUint64, Instant: 1_800_000_000_123_456_789, Wall: 1_800_000_001_123_456_789, Holders: 3},
	}
}

// Win wins a seat, whatever it was.
func Win(t *testing.T, m Mirror, next lease.Seat) lease.Epoch {
	t.Helper()
	seen := look(t, m)
	require.NoError(t, m.Campaign(t.Context(), seen, next))
	return next.Epoch
}

func look(t *testing.T, m Mirror) lease.Seat {
	t.Helper()
	s, err := m.Look(t.Context())
	require.NoError(t, err)
	return s
}

func empty(t *testing.T, m Mirror) {
	require.Zero(t, look(t, m).Epoch)
	e := Seat(1).Epoch
	require.ErrorIs(t, m.Renew(t.Context(), e, lease.Pulse{}), lease.ErrLost)
	require.ErrorIs(t, m.Resign(t.Context(), e), lease.ErrLost)
	require.ErrorIs(t, m.Apply(t.Context(), &lease.Turn{Epoch: e, Seq: 1}), lease.ErrLost)
	_, err := m.Load(t.Context(), e, []lease.Key{"k"})
	require.ErrorIs(t, err, lease.ErrLost)
	_, _, err = m.Keys(t.Context(), e, "")
	require.ErrorIs(t, err, lease.ErrLost)
}

func won(t *testing.T, m Mirror) {
	ctx := t.Context()
	none := look(t, m)
	require.NoError(t, m.Campaign(ctx, none, Seat(1)))
	require.ErrorIs(t, m.Campaign(ctx, none, Seat(2)), lease.ErrMoved, "another was quicker")
	first := look(t, m)
	require.NoError(t, m.Renew(ctx, first.Epoch, lease.Pulse{Beat: 7, Instant: 8, Wall: 9}))
	require.ErrorIs(t, m.Campaign(ctx, first, Seat(2)), lease.ErrMoved, "it lives")
	renewed := look(t, m)
	require.NoError(t, m.Apply(ctx, &lease.Turn{Epoch: first.Epoch, Seq: 1, Instant: 10}))
	require.ErrorIs(t, m.Campaign(ctx, renewed, Seat(2)), lease.ErrMoved, "it takes turns")
	turned := look(t, m)
	require.Equal(t, uint64(1), turned.Seq)
	require.Equal(t, algo.Instant(10), turned.Pulse.Instant)
	require.NoError(t, m.Campaign(ctx, turned, Seat(2)))
	second := look(t, m)
	require.Equal(t, Seat(2).Epoch, second.Epoch)
	require.Zero(t, second.Seq, "turns are numbered anew")
	require.NoError(t, m.Resign(ctx, second.Epoch))
	require.ErrorIs(t, m.Campaign(ctx, second, Seat(3)), lease.ErrMoved, "it was given up meanwhile")
	require.NoError(t, m.Campaign(ctx, look(t, m), Seat(3)))
	require.False(t, look(t, m).Vacant)
}

func seat(t *testing.T, m Mirror) {
	want := Seat(math.MaxUint64 - 1)
	want.Lost = lease.Doubt{Epoch: 5, At: -6, Lag: 0}
	want.Lagged = lease.Doubt{Epoch: 7, At: 8, Lag: math.MaxInt64}
	want.Dial = lease.Dial{Offset: -1}
	e := Win(t, m, want)
	same := func() {
		t.Helper()
		got := look(t, m)
		got.Clock, got.Now, got.Run, got.Running = 0, 0, "", ""
		require.Equal(t, want, got)
	}
	same()
	want.Pulse = lease.Pulse{Beat: 1, Instant: math.MinInt64, Wall: math.MaxInt64, Holders: math.MaxInt32}
	require.NoError(t, m.Renew(t.Context(), e, want.Pulse))
	same()
	want.Pulse.Instant, want.Pulse.Wall, want.Seq = 17, 18, 1
	want.Dial = lease.Dial{Offset: math.MinInt64, Apart: 8 * time.Millisecond, High: math.MaxInt64, Widened: []lease.Widening{
		{At: math.MinInt64, Apart: 16 * time.Millisecond}, {At: math.MaxInt64, Apart: 8 * time.Millisecond},
	}}
	require.NoError(t, m.Apply(t.Context(), &lease.Turn{Epoch: e, Seq: 1, Instant: 17, Wall: 18, Dial: want.Dial}))
	same()
	require.NoError(t, m.Resign(t.Context(), e))
	want.Vacant = true
	same()
}

func fenced(t *testing.T, m Mirror) {
	ctx := t.Context()
	Win(t, m, Seat(5))
	other := Seat(5).Epoch
	other.Mark++
	for epoch, want := range map[lease.Epoch]error{other: lease.ErrFenced, Seat(4).Epoch: lease.ErrFenced, Seat(6).Epoch: lease.ErrLost} {
		require.ErrorIs(t, m.Renew(ctx, epoch, lease.Pulse{Beat: 1}), want)
		require.ErrorIs(t, m.Apply(ctx, &lease.Turn{Epoch: epoch, Seq: 1, Changes: []lease.Change{change("k")}}), want)
		require.ErrorIs(t, m.Resign(ctx, epoch), want)
		_, err := m.Load(ctx, epoch, []lease.Key{"k"})
		require.ErrorIs(t, err, want)
		_, _, err = m.Keys(ctx, epoch, "")
		require.ErrorIs(t, err, want)
	}
	require.Zero(t, look(t, m).Seq)
	require.Empty(t, load(t, m, Seat(5).Epoch, "k").Windows)
}

func vacant(t *testing.T, m Mirror) {
	e := Win(t, m, Seat(1))
	require.NoError(t, m.Resign(t.Context(), e))
	require.ErrorIs(t, m.Apply(t.Context(), &lease.Turn{Epoch: e, Seq: 1}), lease.ErrFenced)
	require.ErrorIs(t, m.Renew(t.Context(), e, lease.Pulse{}), lease.ErrFenced)
	require.ErrorIs(t, m.Resign(t.Context(), e), lease.ErrFenced)
}

func order(t *testing.T, m Mirror) {
	ctx := t.Context()
	e := Win(t, m, Seat(1))
	turn := func(seq uint64, key lease.Key) error {
		return m.Apply(ctx, &lease.Turn{Epoch: e, Seq: seq, Changes: []lease.Change{change(key)}})
	}
	require.ErrorIs(t, turn(2, "early"), lease.ErrGap)
	require.NoError(t, turn(1, "first"))
	require.NoError(t, turn(1, "again"), "said again")
	require.ErrorIs(t, turn(3, "skipped"), lease.ErrGap)
	require.NoError(t, turn(2, "second"))
	require.ErrorIs(t, turn(1, "late"), lease.ErrGap)
	for key, there := range map[lease.Key]bool{"early": false, "first": true, "again": false, "skipped": false, "second": true, "late": false} {
		require.Equal(t, there, len(load(t, m, e, key).Windows) > 0, key)
	}
}

func partitions(t *testing.T, m Mirror) {
	Win(t, m, Seat(1))
	other := Seat(2)
	other.Partitions = 4
	require.ErrorIs(t, m.Campaign(t.Context(), look(t, m), other), lease.ErrPartitions)
	require.Equal(t, Seat(1).Epoch, look(t, m).Epoch)
}

func sound(t *testing.T, m Mirror) {
	next := Seat(1)
	next.Lost, next.Lagged = lease.Doubt{Epoch: 1, At: 2}, lease.Doubt{Epoch: 1, At: 2, Lag: 3}
	e := Win(t, m, next)
	require.NoError(t, m.Apply(t.Context(), &lease.Turn{Epoch: e, Seq: 1}))
	require.Equal(t, next.Lost, look(t, m).Lost)
	require.NoError(t, m.Apply(t.Context(), &lease.Turn{Epoch: e, Seq: 2, Sound: true}))
	require.Zero(t, look(t, m).Lost)
	require.Zero(t, look(t, m).Lagged)
}

func policy(t *testing.T, m Mirror) {
	ctx := t.Context()
	none, err := m.Policy(ctx)
	require.NoError(t, err)
	require.Zero(t, none)
	e := Win(t, m, Seat(1))
	require.Zero(t, look(t, m).Revision)
	apply := func(seq uint64, p *lease.PolicyRecord) {
		t.Helper()
		require.NoError(t, m.Apply(ctx, &lease.Turn{Epoch: e, Seq: seq, Policy: p, Changes: []lease.Change{change("k")}}))
	}
	in := func(want lease.PolicyRecord) {
		t.Helper()
		got, err := m.Policy(ctx)
		require.NoError(t, err)
		require.Equal(t, want, lease.PolicyRecord{Revision: got.Revision, Text: got.Text, Available: look(t, m).Available})
		require.Equal(t, want.Revision, look(t, m).Revision)
	}
	first := lease.PolicyRecord{Revision: 1, Text: "limits: [{key: \"ä\x01\", rules: [1/1s]}]\r\n"}
	apply(1, &first)
	in(first)
	require.NoError(t, m.Renew(ctx, e, lease.Pulse{Revision: 1}))
	second := lease.PolicyRecord{Revision: 12, Text: strings.Repeat("# long\n", 100_000), Available: true}
	apply(2, &second)
	in(second)
	apply(3, nil)
	in(second)
	require.ErrorIs(t, m.Renew(ctx, e, lease.Pulse{Beat: 99, Revision: 11}), lease.ErrPolicy)
	require.NotEqual(t, uint64(99), look(t, m).Pulse.Beat, "who goes by another policy does not live on")
	require.NoError(t, m.Renew(ctx, e, lease.Pulse{Revision: 12}))
	require.NoError(t, m.Renew(ctx, e, lease.Pulse{Revision: 13}), "one that is on its way")
	e = Win(t, m, Seat(2))
	in(second)
	require.NotEmpty(t, load(t, m, e, "k").Windows)
}

func change(key lease.Key) lease.Change {
	return lease.Change{Key: key, Keep: math.MaxInt64, Windows: []lease.WindowRecord{{Rule: "1/1s", State: algo.State{Held: 1}}}}
}

func load(t *testing.T, m Mirror, e lease.Epoch, key lease.Key) lease.Record {
	t.Helper()
	got, err := m.Load(t.Context(), e, []lease.Key{key})
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, key, got[0].Key)
	return got[0]
}

// records plays random turns, and holds the mirror to what lease.Record.Change says.
func records(t *testing.T, m Mirror) {
	random := rand.New(rand.NewPCG(1, 2))
	e := Win(t, m, Seat(1))
	want := map[lease.Key]lease.Record{}
	for seq := range uint64(300) {
		turn := &lease.Turn{Epoch: e, Seq: seq + 1, Instant: Seat(1).Pulse.Instant}
		for range random.IntN(4) {
			c := anyChange(random, want)
			if slices.ContainsFunc(turn.Changes, func(other lease.Change) bool { return other.Key == c.Key }) {
				continue
			}
			turn.Changes = append(turn.Changes, c)
			r := want[c.Key].Clone()
			r.Key = c.Key
			r.Change(c, e.Number)
			if want[c.Key] = r; r.Empty() {
				delete(want, c.Key)
			}
		}
		require.NoError(t, m.Apply(t.Context(), turn))
		for range 2 {
			key := anyKey(random)
			r, there := want[key]
			if r.Key = key; !there {
				r = lease.Record{Key: key}
			}
			require.Equal(t, Sorted(r), Sorted(load(t, m, e, key)))
		}
	}
	require.NotEmpty(t, want)
	for key, r := range want {
		require.Equal(t, Sorted(r), Sorted(load(t, m, e, key)))
	}
	next := Win(t, m, Seat(2))
	for key, r := range want {
		require.Equal(t, Sorted(r), Sorted(load(t, m, next, key)), "under another epoch")
	}
}

func keys(t *testing.T, m Mirror) {
	ctx := context.Background()
	e := Win(t, m, Seat(1))
	want := map[lease.Key]bool{}
	turn := &lease.Turn{Epoch: e, Seq: 1}
	for i := range 3000 {
		key := lease.Key(fmt.Sprintf("k\x00\xff{a}/%d", i))
		want[key] = true
		turn.Changes = append(turn.Changes, change(key))
	}
	require.NoError(t, m.Apply(ctx, turn))
	got := map[lease.Key]bool{}
	from := ""
	for range 10_000 {
		some, next, err := m.Keys(ctx, e, from)
		require.NoError(t, err)
		for _, k := range some {
			got[k] = true
		}
		if from = next; from == "" {
			break
		}
	}
	require.Equal(t, want, got)
}

func large(t *testing.T, m Mirror) {
	random := rand.New(rand.NewPCG(3, 4))
	e := Win(t, m, Seat(1))
	turn := &lease.Turn{Epoch: e, Seq: 1}
	for i := range 50 {
		c := change(lease.Key(fmt.Sprintf("k%d", i)))
		for range 9000 / 50 {
			c.Batches = append(c.Batches, anyBatch(random))
		}
		for at := range 200 {
			c.Windows[0].State.Marks = append(c.Windows[0].State.Marks, algo.Mark{At: algo.Instant(at), N: 1})
		}
		turn.Changes = append(turn.Changes, c)
	}
	require.NoError(t, m.Apply(t.Context(), turn))
	for _, c := range turn.Changes {
		r := lease.Record{Key: c.Key}
		r.Change(c, 1)
		require.Equal(t, Sorted(r), Sorted(load(t, m, e, c.Key)))
	}
}
