package main

import (
	"testing"
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
