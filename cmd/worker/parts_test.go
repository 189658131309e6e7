package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ration/cmd/internal/cli"
	"ration/lease"
)

func TestPaceIsEvenAndMakesUpForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(10)
		began := time.Now()
		for i := range 5 {
			require.True(t, p.wait(t.Context()))
			require.Equal(t, time.Duration(i)*100*time.Millisecond, time.Since(began))
		}
		time.Sleep(time.Second)
		late := time.Now()
		for i := range 3 {
			require.True(t, p.wait(t.Context()))
			require.Equal(t, time.Duration(i)*100*time.Millisecond, time.Since(late))
		}
	})
}

func TestVerdictNamesTheWorstThatHappened(t *testing.T) {
	verdict := func(change func(*tallied)) int {
		tally := newTally()
		tally.note(change)
		return cli.Code(tally.verdict())
	}
	require.Equal(t, cli.Done, verdict(func(t *tallied) { t.done = 3 }))
	require.Equal(t, cli.TimedOut, verdict(func(t *tallied) { t.done, t.late = 3, 1 }))
	require.Equal(t, cli.Failed, verdict(func(t *tallied) { t.failed, t.late = 1, 1 }))
	require.Equal(t, cli.Refused, verdict(func(t *tallied) { t.failed, t.refusal = 1, lease.ErrNever }))
	require.Equal(t, cli.Failed, verdict(func(t *tallied) { t.done, t.broken = 3, errors.New("disk full") }))
}

func TestLogKeepsBytesThatAreNoText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	j, err := openJournal(file)
	require.NoError(t, err)
	item, exit := "\xff", 0
	require.NoError(t, j.write(entry{Item: &item, keys: []string{"a\xfe"}, Cost: 1, Exit: &exit, Sent: 2, Done: 3}))
	require.NoError(t, j.close())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, `{"item64":"/w==","key64":"Yf4=","cost":1,"exit":0,"sent":2,"done":3}`+"\n", string(text))
}

func TestWardenKillsOnlyWhatHasNotEnded(t *testing.T) {
	mark, left := remaining(strings.NewReader("mark\n+12\n+13\n-12\n\nnoise\n+-4\n+1\n+14\n+99999999999999999999\n+15"))
	require.Equal(t, "mark", mark)
	require.Equal(t, map[int]struct{}{13: {}, 14: {}, 15: {}}, left, "never group 1 or below: that would be others, or all")
	mark, _ = remaining(strings.NewReader("mark\n+12\n-12\ndismissed\n"))
	require.Empty(t, mark, "what a command left on purpose lives on")
}
