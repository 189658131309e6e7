package coordinator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/coordinator"
	"ration/lease"
)

// TestAbsence plays what becomes of a mirror, event after event: when promise 1 is off, since
// when, and with how much granted.
func TestAbsence(t *testing.T) {
	type want struct {
		away, behind bool
		since        int // seconds
		tokens       int64
	}
	type event struct {
		do   string
		says bool // what the event gives
		want want
	}
	for name, events := range map[string][]event{
		"there": {
			{"record", false, want{}},
			{"record", false, want{}},
		},
		"away and back": {
			{"record", false, want{}},
			{"late", true, want{true, true, 2, 0}},
			{"answer", false, want{true, true, 2, 1}},
			{"answer", false, want{true, true, 2, 2}},
			{"back", false, want{false, true, 2, 2}},
			{"record", true, want{false, false, 2, 2}},
			{"record", false, want{false, false, 2, 2}},
		},
		"away again before it has caught up": {
			{"late", true, want{true, true, 1, 0}},
			{"answer", false, want{true, true, 1, 1}},
			{"back", false, want{false, true, 1, 1}},
			{"late", false, want{true, true, 1, 1}},
			{"answer", false, want{true, true, 1, 2}},
			{"back", false, want{false, true, 1, 2}},
			{"record", true, want{false, false, 1, 2}},
		},
		"away again after it has caught up": {
			{"late", true, want{true, true, 1, 0}},
			{"answer", false, want{true, true, 1, 1}},
			{"back", false, want{false, true, 1, 1}},
			{"record", true, want{false, false, 1, 1}},
			{"late", true, want{true, true, 5, 0}},
		},
		"away, and what it had is lost": {
			{"record", false, want{}},
			{"late", true, want{true, true, 2, 0}},
			{"answer", false, want{true, true, 2, 1}},
			{"lose", false, want{true, true, 2, 1}},
			{"back", false, want{false, true, 2, 1}},
			{"record", true, want{false, false, 2, 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := lease.ParsePolicy("test.yaml", []byte(`limits: [{key: k, rules: [100/1h]}]`))
			require.NoError(t, err)
			l := lease.NewLedger(p, lease.DefaultConfig())
			a := &coordinator.Absence{}
			var turn *lease.Turn
			changes := 0
			take := func(i int) {
				r := request(uint64(i), 0)
				turn = l.Turn(algo.Instant(i)*algo.Instant(time.Second), []lease.Message{{Ticket: lease.Ticket(i), Request: &r}})
				changes = len(turn.Changes)
			}
			began := time.Unix(0, 0)
			for i, e := range events {
				now := began.Add(time.Duration(i+1) * time.Second)
				says := false
				switch e.do {
				case "record":
					take(i)
					require.NotZero(t, changes, "event %d", i)
					says = a.Recorded(turn)
				case "late":
					says = a.Late(l, turn, now)
				case "answer":
					take(i)
					require.Zero(t, changes, "event %d", i)
					a.Unrecorded(turn)
				case "lose":
					a.Lost(l)
				case "back":
					a.Back(l)
				}
				require.Equal(t, e.says, says, "event %d", i)
				require.Equal(t, e.want.away, a.Away(), "event %d", i)
				b, behind := a.Behind()
				require.Equal(t, e.want.behind, behind, "event %d", i)
				require.Equal(t, e.want.away, b.Away, "event %d", i)
				require.Equal(t, e.want.tokens, b.Granted.Tokens, "event %d", i)
				require.Equal(t, e.want.tokens, b.Leases, "event %d", i)
				if e.want.since > 0 {
					require.Equal(t, began.Add(time.Duration(e.want.since)*time.Second), b.Since, "event %d", i)
				}
			}
		})
	}
}

// TestAbsenceOweWhatWasLost: what a turn has changed that the mirror will never have is
// written back.
func TestAbsenceOwesWhatWasLost(t *testing.T) {
	p, err := lease.ParsePolicy("test.yaml", []byte(`limits: [{key: "{k}", rules: [100/1h]}]`))
	require.NoError(t, err)
	l := lease.NewLedger(p, lease.DefaultConfig())
	a := &coordinator.Absence{}
	r := of("a", 1)
	given := l.Turn(1, []lease.Message{{Ticket: 1, Request: &r}})
	a.Late(l, given, time.Unix(1, 0))
	r = of("b", 2)
	l.Turn(2, []lease.Message{{Ticket: 2, Request: &r}})
	a.Lost(l)
	a.Back(l)
	turn := l.Turn(3, nil)
	var keys []lease.Key
	for _, c := range turn.Changes {
		keys = append(keys, c.Key)
	}
	require.ElementsMatch(t, []lease.Key{"a", "b"}, keys)
	require.True(t, a.Recorded(turn))
}
