package lease_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// A key that is named shows its windows also where nobody has used them, and is not
// in use for that.
func TestStatusOfAKeyThatIsNotUsedHasItsWindows(t *testing.T) {
	l := newLedger(t, `limits: [{key: "{a}", rules: [10/1s, 20/1m]}, {key: "{a}/b", rules: [3/1m]}, {key: c/b/d, rules: [unlimited]}]`)
	var told []string
	for _, k := range l.Status(start, "a/b/c").Keys {
		for _, w := range k.Windows {
			require.Equal(t, w.Limit, w.Free)
			require.Zero(t, w.Full)
			told = append(told, string(k.Key)+": "+w.Rule)
		}
		require.Empty(t, k.Holders)
	}
	require.Equal(t, []string{"a: 10/1s", "a: 20/1m", "a/b: 3/1m"}, told)
	turn(t, l, start, ask("x", 1, start, 0, "a"))
	keys := l.Status(start, "a/b").Keys
	require.Len(t, keys, 2, "one of them is used, and once there")
	require.Equal(t, int64(1), keys[0].Windows[0].Held)
	require.Equal(t, lease.Key("a/b"), keys[1].Key)
	require.Len(t, l.Status(start, "").Keys, 1, "a look uses nothing")
	require.Equal(t, 1, l.Status(start, "z").Live)
}
