package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// TestEachLineIsTakenOnceOrAccountedFor stops the taking after some lines, by
// several takers at once. Blank lines are nobody's.
func TestEachLineIsTakenOnceOrAccountedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-z ]{0,5}`), 0, 30).Draw(t, "lines")
		text := ""
		for _, line := range lines {
			text += line + "\n"
		}
		if len(lines) > 0 && lines[len(lines)-1] != "" && rapid.Bool().Draw(t, "unended") {
			text = strings.TrimSuffix(text, "\n")
		}
		stopAfter := rapid.IntRange(0, 40).Draw(t, "stop after")
		takers := rapid.IntRange(1, 4).Draw(t, "takers")

		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		in := readItems(ctx, strings.NewReader(text))
		taken := make([]int, len(lines)+1)
		var mu sync.Mutex
		left := stopAfter
		var all sync.WaitGroup
		for range takers {
			all.Go(func() {
				for next := range in.out {
					mu.Lock()
					if next.text == lines[next.number-1] {
						taken[next.number]++
					}
					if left--; left == 0 {
						stop()
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if in.pending != nil {
			taken[in.pending.number]++
		}
		require.NoError(t, in.err)
		for n := 1; n <= len(lines); n++ {
			want := 0
			if n <= in.last && strings.TrimSpace(lines[n-1]) != "" {
				want = 1
			}
			require.Equal(t, want, taken[n], "line %d of %d, last %d", n, len(lines), in.last)
		}
		rest := strings.Join(lines[in.last:], "")
		require.Equal(t, strings.TrimSpace(rest) == "", in.all)
	})
}

func TestInputThatCannotBeReadIsAnError(t *testing.T) {
	broken := errors.New("the disk is gone")
	in := readItems(t.Context(), io.MultiReader(strings.NewReader("one\ntw"), iotest.ErrReader(broken)))
	require.Equal(t, item{1, "one"}, <-in.out)
	_, more := <-in.out
	require.False(t, more)
	require.ErrorIs(t, in.err, broken)
	require.ErrorContains(t, in.err, "line 2")
	require.False(t, in.all)
}
