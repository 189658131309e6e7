package coordinator_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
)

// crowd is coordinators that see each other, a little late, and the seats that they have.
type crowd struct {
	t       *testing.T
	rand    *rand.Rand
	now     time.Duration
	seats   []string // whose each is, "" for none
	vacant  []time.Duration
	members []*member
	moves   int // handovers
}

type member struct {
	id      string
	balance *coordinator.Balance
	seen    []coordinator.Peer // how it last saw the others
}

const quarter = 500 * time.Millisecond // of a seat's TTL

func newCrowd(t *testing.T, seed uint64, partitions int, ids ...string) *crowd {
	w := &crowd{t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: time.Hour, seats: make([]string, partitions), vacant: make([]time.Duration, partitions)}
	for _, id := range ids {
		w.join(id)
	}
	return w
}

func (w *crowd) join(id string) *member {
	m := &member{id: id, balance: coordinator.NewBalance(coordinator.BalanceConfig{ID: id, After: after})}
	w.members = append(w.members, m)
	return m
}

// leave ends a coordinator; its seats are vacant at once.
func (w *crowd) leave(id string) {
	w.members = slices.DeleteFunc(w.members, func(m *member) bool { return m.id == id })
	for n, who := range w.seats {
		if who == id {
			w.seats[n], w.vacant[n] = "", w.now
		}
	}
}

func (w *crowd) led(id string) (list []int) {
	for n, who := range w.seats {
		if who == id {
			list = append(list, n)
		}
	}
	return list
}

// peers is what others say, seen by m.
func (w *crowd) peers(m *member) (list []coordinator.Peer) {
	for _, o := range w.members {
		if o == m {
			continue
		}
		p := coordinator.Peer{ID: o.id, Name: o.id, Leads: w.led(o.id)}
		for n := range w.seats {
			if o.balance.Claims(n) {
				p.Claims = append(p.Claims, n)
			}
		}
		list = append(list, p)
	}
	return list
}

// step lets 50 ms pass: members look, hand over and take what is vacant, in any order.
func (w *crowd) step() {
	w.now += 50 * time.Millisecond
	w.rand.Shuffle(len(w.members), func(i, j int) { w.members[i], w.members[j] = w.members[j], w.members[i] })
	for _, m := range w.members {
		if w.rand.IntN(3) > 0 { // else nothing came of late
			m.seen = w.peers(m)
		}
		own := make([]bool, len(w.seats))
		for _, n := range w.led(m.id) {
			own[n] = true
		}
		m.balance.Watch(w.now, own, true, m.seen)
		for n := range w.seats {
			switch {
			case w.seats[n] == m.id:
				if _, yields := m.balance.Yield(w.now, n); yields {
					w.seats[n], w.vacant[n] = "", w.now
					w.moves++
				}
			case w.seats[n] == "" && !(m.balance.Left(n) && w.now-w.vacant[n] < quarter):
				w.seats[n] = m.id
			}
		}
	}
}

func (w *crowd) pass(d time.Duration) {
	for end := w.now + d; w.now < end; {
		w.step()
	}
}

// fair fails unless all are led, by everybody as many but for one.
func (w *crowd) fair(what string) {
	w.t.Helper()
	least, most := len(w.seats), 0
	for _, m := range w.members {
		led := len(w.led(m.id))
		least, most = min(least, led), max(most, led)
	}
	require.NotContains(w.t, w.seats, "", what)
	require.LessOrEqual(w.t, most-least, 1, "%s: %v", what, w.seats)
}

// TestThreeCoordinatorsShareAndThenRest: whatever comes, once the newcomers are there
// long enough all is fair, by no more handovers than it takes, and then nothing moves.
func TestThreeCoordinatorsShareAndThenRest(t *testing.T) {
	for seed := range uint64(32) {
		partitions := 1 + int(seed%16)
		w := newCrowd(t, seed, partitions, "a")
		w.step()
		require.Len(t, w.led("a"), partitions, "seed %d", seed)
		w.join("b")
		w.pass(after - time.Second)
		require.Zero(t, w.moves, "seed %d: it is a newcomer", seed)
		w.join("c")
		w.pass(30 * time.Second)
		w.fair(fmt.Sprintf("seed %d, three", seed))
		moves := w.moves
		require.LessOrEqual(t, moves, partitions+1, "seed %d", seed)
		w.pass(2 * time.Minute)
		require.Equal(t, moves, w.moves, "seed %d: it does not flap", seed)

		w.leave("a")
		w.pass(30 * time.Second)
		w.fair(fmt.Sprintf("seed %d, without a", seed))
		moves = w.moves
		w.pass(2 * time.Minute)
		require.Equal(t, moves, w.moves, "seed %d: it does not flap without a", seed)
	}
}

// TestCrashLoopingNewcomerGetsNothing: others lead all, and it never lives for long.
func TestCrashLoopingNewcomerGetsNothing(t *testing.T) {
	for seed := range uint64(20) {
		w := newCrowd(t, seed, 8, "a")
		w.pass(time.Minute)
		for life := range 30 {
			id := fmt.Sprintf("loop %d", life)
			w.join(id)
			w.pass(time.Duration(w.rand.IntN(95)) * 100 * time.Millisecond)
			require.Empty(t, w.led(id), "seed %d, life %d", seed, life)
			w.leave(id)
			w.pass(time.Duration(w.rand.IntN(20)) * 100 * time.Millisecond)
		}
		require.Zero(t, w.moves, "seed %d", seed)
	}
}
