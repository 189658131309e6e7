package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ration/lease"
)

func drawn() *document {
	d := newDocument(lease.Status{
		Keys: []lease.KeyStatus{
			{
				Key: "acme/search",
				Windows: []lease.WindowStatus{
					{Rule: "100/1s", Limit: 100, Free: 40, Held: 10, Spent: 50, Full: 487339 * time.Microsecond},
					{Rule: "4 concurrent", Limit: 4, Free: 2, Held: 2},
				},
				Holders: []lease.HolderStatus{
					{Holder: lease.Holder{Name: "shell-1", Incarnation: 0x7f3a}, Held: lease.Amount{Tokens: 9, Slots: 1}},
					{Holder: lease.Holder{Name: "shell-2", Incarnation: 0x11}, Held: lease.Amount{Tokens: 1, Slots: 1, Units: lease.Units{{Unit: "images", N: 3}, {Unit: "tokens", N: 1200}}}},
				},
				Waiting: 3,
			},
			{Key: "free", Windows: []lease.WindowStatus{{Rule: "unlimited", Limit: 1 << 62, Free: 1<<62 - 5, Held: 5}}},
			{Key: "\xff\x00", Windows: []lease.WindowStatus{{Rule: "1000000/1d", Limit: 1_000_000, Free: 999_999, Spent: 1, Full: 24 * time.Hour}}},
		},
		More: 2, Leases: 3, Waiting: 3, Held: lease.Amount{Tokens: 15, Slots: 2, Units: lease.Units{{Unit: "images", N: 3}, {Unit: "tokens", N: 1200}, {Unit: "v", N: 1}}},
	})
	d.Leader, d.Cell, d.State = "one", "default", "memory"
	d.Partitions = []partition{{N: 0, Leader: "one", Epoch: 4}}
	return d
}

func TestStatusIsReadable(t *testing.T) {
	require.Equal(t, `one leads cell default, epoch 4, state in memory
3 leases hold 15 tokens and 2 slots; 3 requests wait

KEY / RULE      USE           FREE  HELD  SPENT    LIMIT  FULL IN
acme/search  3 waiting
  100/1s        █████▒····      40    10     50      100  487ms
  4 concurrent  ▒▒▒▒▒·····       2     2      0        4  -
  held by shell-1.7f3a 9 tokens and 1 slot,
          shell-2.11 1 token and 1 slot and 3 unit=images and 1200 unit=tokens
free
  unlimited                      -     5      0        -  -
\xff\x00
  1000000/1d    █·········  999999     0      1  1000000  24h0m0s
and 2 further keys; name one to see it
`, string(drawing{width: 80}.draw(drawn(), "")))
}

func TestStatusTellsThatClocksAreApart(t *testing.T) {
	d := newDocument(lease.Status{Clock: lease.Clock{Offset: time.Hour, Ahead: -1500 * time.Millisecond, Wider: 2048 * time.Millisecond}})
	d.Leader, d.Cell = "one", "default"
	require.Equal(t, `one leads cell default, epoch 0
0 leases hold 0 tokens; 0 requests wait
clock apart: the wall clock is 1.5s behind calendar time;
until it is followed, guards of fixed rules are 2.05s wider
nothing is held, spent or waited for
`, string(drawing{width: 80}.draw(d, "")))
	told, err := json.Marshal(d.Clock)
	require.NoError(t, err)
	require.JSONEq(t, `{"ahead": -1500000000, "wider": 2048000000}`, string(told))
	require.Nil(t, newDocument(lease.Status{Clock: lease.Clock{Offset: time.Hour}}).Clock)
}

func TestColourChangesNothingButColour(t *testing.T) {
	plain := string(drawing{width: 80}.draw(drawn(), ""))
	coloured := string(drawing{width: 80, colour: true}.draw(drawn(), ""))
	require.NotEqual(t, plain, coloured)
	require.Equal(t, plain, regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(coloured, ""))
	require.NotContains(t, plain, "\x1b")
}

func TestStatusFitsEightyColumns(t *testing.T) {
	number := rapid.Int64Range(0, 1_000_000_000_000_000)
	rapid.Check(t, func(t *rapid.T) {
		s := lease.Status{Leases: rapid.IntRange(0, 1<<40).Draw(t, "leases")}
		for range rapid.IntRange(0, 3).Draw(t, "keys") {
			k := lease.KeyStatus{Key: lease.Key(rapid.StringN(1, 200, 300).Draw(t, "key")), Waiting: rapid.IntRange(0, 10_000).Draw(t, "waiting")}
			for range rapid.IntRange(1, 3).Draw(t, "windows") {
				w := lease.WindowStatus{Rule: rapid.StringMatching(`[0-9]{1,15}/[0-9]{1,4}ms( bucket burst=[0-9]{1,15})?`).Draw(t, "rule")}
				w.Limit, w.Free, w.Held, w.Spent = number.Draw(t, "limit"), number.Draw(t, "free"), number.Draw(t, "held"), number.Draw(t, "spent")
				w.Full = time.Duration(rapid.Int64Range(0, int64(10*365*24*time.Hour)).Draw(t, "full"))
				k.Windows = append(k.Windows, w)
			}
			for range rapid.IntRange(0, 10).Draw(t, "holders") {
				h := lease.HolderStatus{Holder: lease.Holder{Name: rapid.StringN(1, 60, 120).Draw(t, "holder")}}
				for range rapid.IntRange(0, 8).Draw(t, "units") {
					unit := rapid.StringMatching(`[a-z][a-z0-9_-]{0,31}`).Draw(t, "unit")
					h.Held.Units = h.Held.Units.Plus(unit, number.Draw(t, "amount"))
				}
				k.Holders = append(k.Holders, h)
			}
			s.Keys = append(s.Keys, k)
		}
		d := newDocument(s)
		d.Leader = rapid.String().Draw(t, "leader")
		for line := range strings.Lines(string(drawing{width: 80}.draw(d, ""))) {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 81, "%q", line)
		}
	})
}

func TestStatusComesBackFromJSON(t *testing.T) {
	d := drawn()
	body, err := json.Marshal(d)
	require.NoError(t, err)
	back, err := parseDocument(body)
	require.NoError(t, err)
	require.Equal(t, d, back)
	require.Equal(t, "\xff\x00", back.Keys[2].name(), "a key that is not UTF-8 keeps its bytes")
}

func TestStatusShowsTheClassesOfALine(t *testing.T) {
	d := drawn()
	bound := 500
	d.Keys[0].Classes = []classState{{"premium", &bound, 3, 40, 1}, {"standard", nil, 0, 7, 0}}
	text := string(drawing{width: 80}.draw(d, ""))
	require.Contains(t, text, "\n  class premium: 3 of 500 waiting, 40 granted, 1 refused\n  class standard: 0 waiting, 7 granted, 0 refused\n  held by shell")
}

func TestClassesOfPartitionsAreAddedUp(t *testing.T) {
	d := &document{}
	d.addClasses([]classState{{"premium", nil, 1, 2, 3}})
	d.addClasses([]classState{{"premium", nil, 10, 20, 30}, {"standard", nil, 1, 1, 1}})
	require.Equal(t, []classState{{"premium", nil, 11, 22, 33}, {"standard", nil, 1, 1, 1}}, d.Classes)
}
