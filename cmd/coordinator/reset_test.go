package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestResetSaysWhatItChanged(t *testing.T) {
	for want, r := range map[string]clockReset{
		"calendar time is the wall clock of a: set forward by 1h0m0.5s, and guards of fixed rules are no longer 2h0m0s wider; a window of a fixed rule may open twice, or early": {Leader: "a", Moved: int64(time.Hour + 500*time.Millisecond), Wider: int64(2 * time.Hour)},
		"calendar time is the wall clock of a: set back by 2s, and guards of fixed rules are no longer 4s wider; a window of a fixed rule may open twice, or early":              {Leader: "a", Moved: -int64(2 * time.Second), Wider: int64(4 * time.Second)},
		`calendar time is the wall clock of \x1b; they were not apart`: {Leader: "\x1b", Moved: 999},
	} {
		require.Equal(t, want, r.String())
	}
}

// TestPartitionThatHangsTakesNoOthersTime: the others are asked, and those that fail are
// told apart.
func TestPartitionThatHangsTakesNoOthersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := errors.New("no")
		all := askAll[clockReset](t.Context(), 5, time.Second, func(ctx context.Context, n int) (json.RawMessage, error) {
			switch n {
			case 1:
				<-ctx.Done()
				return nil, ctx.Err()
			case 2:
				return nil, no
			case 3:
				return json.RawMessage("[]"), nil
			}
			return json.RawMessage(fmt.Sprintf(`{"moved": %d}`, n)), ctx.Err()
		})
		require.Equal(t, outcome[clockReset]{told: clockReset{Moved: 0}}, all[0])
		require.ErrorIs(t, all[1].err, context.DeadlineExceeded)
		require.ErrorIs(t, all[2].err, no)
		require.Error(t, all[3].err)
		require.Equal(t, outcome[clockReset]{told: clockReset{Moved: 4}}, all[4])
	})
}
