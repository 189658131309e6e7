package oracle_test

import (
	"testing"
	"time"

	"ration/integration/oracle"

	"github.com/stretchr/testify/require"
)

func TestRuleTextMeansOneThing(t *testing.T) {
	for text, want := range map[string]oracle.Rule{
		"200/1s":                        {Limit: 200, Window: time.Second},
		"200/1s sliding":                {Limit: 200, Window: time.Second},
		"12/3s":                         {Limit: 12, Window: 3 * time.Second},
		"5/1060ms":                      {Limit: 5, Window: 1060 * time.Millisecond},
		"0/1d":                          {Limit: 0, Window: 24 * time.Hour},
		"10000/1d fixed":                {Kind: oracle.Fixed, Limit: 10000, Window: 24 * time.Hour},
		"100/1m counter":                {Kind: oracle.Counter, Limit: 100, Window: time.Minute},
		"9/1w fixed":                    {Kind: oracle.Fixed, Limit: 9, Window: 7 * 24 * time.Hour, Calendar: "w"},
		"9/1mo fixed tz=UTC":            {Kind: oracle.Fixed, Limit: 9, Window: 31 * 24 * time.Hour, Calendar: "mo"},
		"9/7h fixed tz=Asia/Kathmandu":  {Kind: oracle.Fixed, Limit: 9, Window: 7 * time.Hour, Zone: "Asia/Kathmandu"},
		"9/1d fixed tz=Europe/Berlin":   {Kind: oracle.Fixed, Limit: 9, Window: 24 * time.Hour, Zone: "Europe/Berlin"},
		"100/1m bucket":                 {Kind: oracle.Bucket, Limit: 100, Window: time.Minute, Burst: 100},
		"100/1m bucket burst=50":        {Kind: oracle.Bucket, Limit: 100, Window: time.Minute, Burst: 50},
		"10/1s pace":                    {Kind: oracle.Pace, Limit: 10, Window: time.Second},
		"90/1s unit=w":                  {Limit: 90, Window: time.Second, Unit: "w"},
		"9/1m bucket burst=5 unit=a_-9": {Kind: oracle.Bucket, Limit: 9, Window: time.Minute, Burst: 5, Unit: "a_-9"},
		"16 concurrent":                 {Kind: oracle.Concurrent, Limit: 16},
	} {
		got, err := oracle.ParseRule(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := oracle.ParseRule(got.String())
		require.NoError(t, err, got.String())
		require.Equal(t, got, again, got.String())
	}
}

func TestUnclearRuleTextIsAnError(t *testing.T) {
	for _, text := range []string{
		"", "200", "200/s", "200/0s", "-1/1s", "+1/1s", "1.5/1s", "200/1w", "200/1s fxed", "200 / 1s", "200/1s fixed burst=2",
		"200/1s burst=2", "200/1s unit=", "200/1s unit=W", "200/1s unit=w fixed", "200/1s unit=call", "4 concurrent unit=w", "200/1s bucket burst=", "concurrent", "-4 concurrent", "99999999999999999999/1s",
		"99999999999999999999 concurrent", "1/99999999999d", "1/1s bucket burst=99999999999999999999", "200/1s\n", "10/1s pace burst=2", "10 pace",
		"200/1w", "200/1w counter", "200/2w fixed", "200/1mo bucket", "200/12mo fixed", "200/1s tz=UTC", "200/1s counter tz=UTC",
		"200/1s fixed tz=", "200/1s fixed tz=Nowhere", "200/1s fixed tz=Local", "200/2d fixed tz=Europe/Berlin", "200/1s counter burst=2",
	} {
		_, err := oracle.ParseRule(text)
		require.Error(t, err, "%q", text)
	}
	_, err := oracle.ParseRules("5/1s,,12/3s")
	require.Error(t, err)
	require.Panics(t, func() { oracle.MustRules("five a second") })
}

func TestGuardWidensSlidingWindowsAndGaps(t *testing.T) {
	rules := oracle.MustRules("5/1s, 9/1s fixed, 9/1s bucket, 9/1s pace, 4 concurrent")
	require.Equal(t, oracle.MustRules("5/1060ms, 9/1s fixed, 9/1s bucket, 9/1540ms pace, 4 concurrent"), oracle.Wider(rules, 60*time.Millisecond))
	require.Equal(t, oracle.MustRules("5/1s, 9/1s fixed, 9/1s bucket, 9/1s pace"), oracle.Rates(rules))
}

func FuzzRuleTextRoundTrips(f *testing.F) {
	for _, text := range []string{"200/1s", "1/1d fixed", "3/5m bucket burst=7", "10/1s pace", "16 concurrent", "7/90061ms", "5/1m counter", "5/1w fixed tz=Europe/Berlin", "5/1mo fixed", "7/1s fixed unit=w"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := oracle.ParseRule(text)
		if err != nil {
			return
		}
		again, err := oracle.ParseRule(r.String())
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
