package algo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestForgetFreesWhatIsSpentAndNothingThatIsHeld: whatever the rule, also beyond its limit; and
// what is held is settled or returned afterwards as ever.
func TestForgetFreesWhatIsSpentAndNothingThatIsHeld(t *testing.T) {
	const at = Instant(1_800_000_000_000_000_000)
	for _, text := range []string{"10/1s", "10/1m fixed", "10/1m bucket burst=10", "10/1m counter", "10/1m pace", "10 concurrent"} {
		for _, guard := range []time.Duration{0, 100 * time.Millisecond} {
			rule, err := ParseRule(text)
			require.NoError(t, err)
			w := Compile(rule, Allowance{Guard: guard}).Window(at)
			w.Take(at, 5)
			w.Settle(at, 2, at)
			w.Charge(at, 100, at)
			w.Forget(at + 1)
			require.Equal(t, int64(3), w.Held(), text)
			if rule.Kind != Pace { // of which nothing is free while any is held
				require.Equal(t, w.Limit()-3, w.Free(at+1), text)
				require.Zero(t, w.Spent(at+1), text)
			}
			w.Return(at+2, 2)
			w.Settle(at+2, 1, at+2)
			w.Forget(at + 3)
			require.Equal(t, w.Limit(), w.Free(at+3), text)
			require.True(t, w.Idle(at+3), text)
		}
	}
}
