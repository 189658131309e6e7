package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// In the bubble there is no wall time, so the schedule is exact.
func TestCallsComeAtTheContractsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out))
		var want strings.Builder
		for i := range 20 {
			at := map[int]string{0: "0.0", 1: "1.0", 2: "2.0", 3: "3.0", 4: "4.0"}[i/5]
			if i >= 10 { // 12 in any 3 seconds
				at = "2.0"
			}
			if i >= 12 {
				at = "3.0"
			}
			if i >= 17 {
				at = "4.0"
			}
			fmt.Fprintf(&want, "call %2d at %s s\n", i+1, at)
		}
		require.Equal(t, want.String(), out.String())
	})
}

func TestInterruptedCallersAreToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 1500*time.Millisecond, errors.New("enough"))
		defer cancel()
		var out strings.Builder
		require.Error(t, run(ctx, &out))
		require.Equal(t, 10, strings.Count(out.String(), "call"), out.String())
	})
}
