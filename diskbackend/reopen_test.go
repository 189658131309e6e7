package diskbackend_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/diskbackend"
	"ration/internal/mirrortest"
	"ration/lease"
)

// several are the prefixes that a numbered turn changes, all to the same number.
var several = []lease.Key{"a", "a/b", "a\x00", "\xff", "b"}

func numbered(e lease.Epoch, seq uint64) *lease.Turn {
	t := &lease.Turn{Epoch: e, Seq: seq, Instant: mirrortest.Seat(1).Pulse.Instant}
	for _, k := range several {
		t.Changes = append(t.Changes, spent(k, int64(seq)))
	}
	if seq%3 == 0 {
		t.Changes[seq%2].Whole = true
	}
	return t
}

// win wins the seat with the next number.
func win(t testing.TB, m *diskbackend.Mirror) lease.Epoch {
	t.Helper()
	seen := look(t, m)
	next := mirrortest.Seat(seen.Epoch.Number + 1)
	require.NoError(t, m.Campaign(t.Context(), seen, next))
	return next.Epoch
}

func look(t testing.TB, m *diskbackend.Mirror) lease.Seat {
	t.Helper()
	s, err := m.Look(t.Context())
	require.NoError(t, err)
	return s
}

// hasTurn checks that a mirror has one turn, all of it and nothing later, and gives its
// number.
func hasTurn(t *testing.T, m *diskbackend.Mirror) uint64 {
	t.Helper()
	seq := look(t, m).Seq
	records, err := m.Load(t.Context(), win(t, m), several)
	require.NoError(t, err)
	for _, r := range records {
		if seq == 0 {
			continue // under the epoch; there may be some of another
		}
		require.Equal(t, int64(seq), r.Windows[0].State.Spent, r.Key)
		require.Contains(t, r.Windows[0].State.Marks, algo.Mark{At: algo.Instant(seq), N: int64(seq)}, r.Key)
	}
	return seq
}

func TestWhatWasClosedIsThereAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	m := open(t, dir)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	e := win(t, m)
	require.NoError(t, m.Apply(t.Context(), numbered(e, 1)))
	require.NoError(t, m.Apply(t.Context(), &lease.Turn{Epoch: e, Seq: 2, Instant: 5, Wall: 6}), "changes nothing")
	require.NoError(t, m.Renew(t.Context(), e, lease.Pulse{Beat: 7, Instant: 8, Wall: 9}))
	before := look(t, m)
	require.NotZero(t, before.Clock)
	require.NoError(t, m.Close())
	require.NoError(t, m.Close(), "again")
	require.ErrorIs(t, m.Renew(t.Context(), e, lease.Pulse{}), os.ErrClosed)
	require.ErrorIs(t, m.Apply(t.Context(), numbered(e, 3)), os.ErrClosed)
	require.ErrorIs(t, m.Campaign(t.Context(), before, mirrortest.Seat(3)), os.ErrClosed)
	require.ErrorIs(t, m.Resign(t.Context(), e), os.ErrClosed)
	_, err = m.Look(t.Context())
	require.ErrorIs(t, err, os.ErrClosed)
	_, err = m.Load(t.Context(), e, several)
	require.ErrorIs(t, err, os.ErrClosed)
	_, _, err = m.Keys(t.Context(), e, "")
	require.ErrorIs(t, err, os.ErrClosed)

	m = open(t, dir)
	after := look(t, m)
	require.True(t, after.Vacant, "nobody can lead who has not the file")
	require.ErrorIs(t, m.Renew(t.Context(), e, lease.Pulse{}), lease.ErrFenced)
	before.Vacant = true
	require.GreaterOrEqual(t, after.Now, before.Now)
	before.Now = after.Now
	require.Equal(t, before, after)
	records, err := m.Load(t.Context(), win(t, m), several)
	require.NoError(t, err)
	require.Equal(t, int64(1), records[0].Windows[0].State.Spent)
}

// The text of the seat is what later versions read.
func TestSeatIsText(t *testing.T) {
	m := open(t, t.TempDir())
	next := mirrortest.Seat(5)
	next.Lagged = lease.Doubt{Epoch: 7, At: 8, Lag: 9}
	require.NoError(t, m.Campaign(t.Context(), lease.Seat{}, next))
	text, err := m.Get("about", "seat")
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf(`{"Epoch":{"Number":5,"Mark":18446744073709551610},"Name":"c 5/ä","Mirror":18446744073709551608,"Partitions":1,"Vacant":false,"Seq":0,`+
		`"Pulse":{"Beat":18446744073709551615,"Instant":1800000000123456789,"Wall":1800000001123456789,"Holders":3,"Run":""},"Revision":0,"Available":false,"Dial":"","Clock":%d,"Now":0,`+
		`"Run":"","Running":"","Lost":{"Epoch":0,"At":0,"Lag":0},"Lagged":{"Epoch":7,"At":8,"Lag":9},"Fresh":false}`, look(t, m).Clock), text)
}

// TestBeatsAreNotWrittenEach: what only shows that the leader lives, and turns that
// changed nothing, wait for the next turn that did, or for a second.
func TestBeatsAreNotWrittenEach(t *testing.T) {
	m := open(t, t.TempDir())
	e := win(t, m)
	written := func() string {
		text, err := m.Get("about", "seat")
		require.NoError(t, err)
		return text
	}
	before, began := written(), time.Now()
	seq := uint64(0)
	for beat := uint64(1); time.Since(began) < 500*time.Millisecond; beat++ {
		require.NoError(t, m.Renew(t.Context(), e, lease.Pulse{Beat: beat}))
		seq++
		require.NoError(t, m.Apply(t.Context(), &lease.Turn{Epoch: e, Seq: seq}))
		require.Equal(t, beat, look(t, m).Pulse.Beat)
		require.Equal(t, seq, look(t, m).Seq)
	}
	if time.Since(began) < time.Second { // else it was held up
		require.Equal(t, before, written())
	}
	require.NoError(t, m.Apply(t.Context(), numbered(e, seq+1)))
	turned := written()
	require.NotEqual(t, before, turned)
	require.Contains(t, turned, fmt.Sprintf(`"Seq":%d,`, seq+1))
	time.Sleep(1100 * time.Millisecond)
	require.NoError(t, m.Renew(t.Context(), e, lease.Pulse{Beat: 12345}))
	require.Contains(t, written(), `"Beat":12345,`)
}

// TestCrashInATurnLeavesTheTurnBefore builds the files that a power cut leaves while a
// turn is written: any of its pages may be there, in any order, until the disk has said
// that all are; the page that makes them count comes after, whole, in part or not.
func TestCrashInATurnLeavesTheTurnBefore(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	m := open(t, dir)
	e := win(t, m)
	m.Unsync()
	file := func() []byte {
		all, err := os.ReadFile(filepath.Join(dir, "ration.db"))
		require.NoError(t, err)
		return all
	}
	page, meta := os.Getpagesize(), 2*os.Getpagesize()
	before := file()
	for seq := uint64(1); seq <= 40; seq++ {
		turn := numbered(e, seq)
		for range random.IntN(40) {
			turn.Changes = append(turn.Changes, spent(lease.Key(fmt.Sprint("more", seq, random.Int())), 1))
		}
		require.NoError(t, m.Apply(t.Context(), turn))
		after := file()
		copied := slices.Clone(before)
		copied = append(copied, make([]byte, max(0, len(after)-len(before)))...)
		for at := meta; at < len(after); at += page {
			if random.IntN(2) == 0 {
				copy(copied[at:at+page], after[at:])
			}
		}
		require.Equal(t, seq-1, reopened(t, copied), "without the page that makes it count")
		copy(copied[meta:], after[meta:])
		changed := 0
		if bytes.Equal(before[:page], after[:page]) {
			changed = page
		}
		copy(copied[changed:], after[changed:changed+40+random.IntN(30)])
		require.Equal(t, seq-1, reopened(t, copied), "with half of it")
		copy(copied, after[:meta])
		require.Equal(t, seq, reopened(t, copied), "with it")
		before = after
	}
}

// reopened gives which turn is in a copy.
func reopened(t *testing.T, file []byte) uint64 {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ration.db"), file, 0o600))
	m, err := diskbackend.Open(dir)
	require.NoError(t, err)
	defer m.Close()
	m.Unsync()
	return hasTurn(t, m)
}
