package algo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

const day = 24 * time.Hour

func length(d time.Duration) algo.Period { return algo.Period{Length: d} }

var goodRules = []struct {
	text    string
	rule    algo.Rule
	written string
}{
	{"10/1s", algo.Rule{Kind: algo.Sliding, Limit: 10, Period: length(time.Second)}, "10/1s"},
	{"10/s", algo.Rule{Kind: algo.Sliding, Limit: 10, Period: length(time.Second)}, "10/1s"},
	{"10/second", algo.Rule{Kind: algo.Sliding, Limit: 10, Period: length(time.Second)}, "10/1s"},
	{"10/1s sliding", algo.Rule{Kind: algo.Sliding, Limit: 10, Period: length(time.Second)}, "10/1s"},
	{" 10 / 1 s\tsliding ", algo.Rule{Kind: algo.Sliding, Limit: 10, Period: length(time.Second)}, "10/1s"},
	{"500 per minute", algo.Rule{Kind: algo.Sliding, Limit: 500, Period: length(time.Minute)}, "500/1m"},
	{"500 per 2 minutes", algo.Rule{Kind: algo.Sliding, Limit: 500, Period: length(2 * time.Minute)}, "500/2m"},
	{"500/m", algo.Rule{Kind: algo.Sliding, Limit: 500, Period: length(time.Minute)}, "500/1m"},
	{"10000/day", algo.Rule{Kind: algo.Sliding, Limit: 10000, Period: length(day)}, "10000/1d"},
	{"10_000/24h", algo.Rule{Kind: algo.Sliding, Limit: 10000, Period: length(day)}, "10000/1d"},
	{"100/7d", algo.Rule{Kind: algo.Sliding, Limit: 100, Period: length(7 * day)}, "100/7d"},
	{"1/100ms", algo.Rule{Kind: algo.Sliding, Limit: 1, Period: length(100 * time.Millisecond)}, "1/100ms"},
	{"1/1500us", algo.Rule{Kind: algo.Sliding, Limit: 1, Period: length(1500 * time.Microsecond)}, "1/1500us"},
	{"1/3µs", algo.Rule{Kind: algo.Sliding, Limit: 1, Period: length(3 * time.Microsecond)}, "1/3us"},
	{"1/7ns", algo.Rule{Kind: algo.Sliding, Limit: 1, Period: length(7)}, "1/7ns"},
	{"1000/1h30m", algo.Rule{Kind: algo.Sliding, Limit: 1000, Period: length(90 * time.Minute)}, "1000/90m"},
	{"1000/1d1h1m1s1ms1us1ns", algo.Rule{Kind: algo.Sliding, Limit: 1000, Period: length(90061*time.Second + 1001001)}, "1000/90061001001001ns"},
	{"1/5s", algo.Rule{Kind: algo.Sliding, Limit: 1, Period: length(5 * time.Second)}, "1/5s"},
	{"1/315359999999999999ns", algo.Rule{Kind: algo.Sliding, Limit: 1, Period: length(algo.MaxPeriod - 1)}, "1/315359999999999999ns"},
	{"0/1s", algo.Rule{Kind: algo.Sliding, Period: length(time.Second)}, "0/1s"},
	{"007/1s", algo.Rule{Kind: algo.Sliding, Limit: 7, Period: length(time.Second)}, "7/1s"},
	{"1/3650d", algo.Rule{Kind: algo.Sliding, Limit: 1, Period: length(algo.MaxPeriod)}, "1/3650d"},
	{"1000000000000000/1d", algo.Rule{Kind: algo.Sliding, Limit: algo.MaxLimit, Period: length(day)}, "1000000000000000/1d"},
	{"10000/1d fixed", algo.Rule{Kind: algo.Fixed, Limit: 10000, Period: length(day)}, "10000/1d fixed"},
	{"10000/1d fixed tz=UTC", algo.Rule{Kind: algo.Fixed, Limit: 10000, Period: length(day)}, "10000/1d fixed"},
	{"10000/1d tz=UTC fixed", algo.Rule{Kind: algo.Fixed, Limit: 10000, Period: length(day)}, "10000/1d fixed"},
	{"10000/1d fixed tz=Europe/Berlin", algo.Rule{Kind: algo.Fixed, Limit: 10000, Period: length(day), Zone: "Europe/Berlin"}, "10000/1d fixed tz=Europe/Berlin"},
	{"5/w tz=America/Argentina/Buenos_Aires fixed", algo.Rule{Kind: algo.Fixed, Limit: 5, Period: length(7 * day), Zone: "America/Argentina/Buenos_Aires"}, "5/1w fixed tz=America/Argentina/Buenos_Aires"},
	{"5/1h fixed tz=Etc/GMT+8", algo.Rule{Kind: algo.Fixed, Limit: 5, Period: length(time.Hour), Zone: "Etc/GMT+8"}, "5/1h fixed tz=Etc/GMT+8"},
	{"1000/1h counter", algo.Rule{Kind: algo.Counter, Limit: 1000, Period: length(time.Hour)}, "1000/1h counter"},
	{"1000 per 90 minutes counter", algo.Rule{Kind: algo.Counter, Limit: 1000, Period: length(90 * time.Minute)}, "1000/90m counter"},
	{"10/1s pace", algo.Rule{Kind: algo.Pace, Limit: 10, Period: length(time.Second)}, "10/1s pace"},
	{"600 per 2 minutes pace", algo.Rule{Kind: algo.Pace, Limit: 600, Period: length(2 * time.Minute)}, "600/2m pace"},
	{"5/w fixed", algo.Rule{Kind: algo.Fixed, Limit: 5, Period: length(7 * day)}, "5/1w fixed"},
	{"5/7d fixed", algo.Rule{Kind: algo.Fixed, Limit: 5, Period: length(7 * day)}, "5/1w fixed"},
	{"5/1mo fixed", algo.Rule{Kind: algo.Fixed, Limit: 5, Period: algo.Period{Months: 1}}, "5/1mo fixed"},
	{"5 per month fixed", algo.Rule{Kind: algo.Fixed, Limit: 5, Period: algo.Period{Months: 1}}, "5/1mo fixed"},
	{"100/1m bucket burst=50", algo.Rule{Kind: algo.Bucket, Limit: 100, Period: length(time.Minute), Burst: 50}, "100/1m bucket burst=50"},
	{"100/1m burst=50 bucket", algo.Rule{Kind: algo.Bucket, Limit: 100, Period: length(time.Minute), Burst: 50}, "100/1m bucket burst=50"},
	{"100/1m bucket", algo.Rule{Kind: algo.Bucket, Limit: 100, Period: length(time.Minute), Burst: 100}, "100/1m bucket"},
	{"0/1s bucket burst=1", algo.Rule{Kind: algo.Bucket, Period: length(time.Second), Burst: 1}, "0/1s bucket burst=1"},
	{"0/1s bucket burst=0", algo.Rule{Kind: algo.Bucket, Period: length(time.Second)}, "0/1s bucket"},
	{"1/1y bucket burst=1000", algo.Rule{Kind: algo.Bucket, Limit: 1, Period: length(365 * day), Burst: 1000}, "1/365d bucket burst=1000"},
	{"200000/1m unit=tokens", algo.Rule{Kind: algo.Sliding, Limit: 200000, Period: length(time.Minute), Unit: "tokens"}, "200000/1m unit=tokens"},
	{"200000/1m unit = tokens sliding", algo.Rule{Kind: algo.Sliding, Limit: 200000, Period: length(time.Minute), Unit: "tokens"}, "200000/1m unit=tokens"},
	{"10/1s unit=call", algo.Rule{Kind: algo.Sliding, Limit: 10, Period: length(time.Second)}, "10/1s"},
	{"10/1s unit=a_-9", algo.Rule{Kind: algo.Sliding, Limit: 10, Period: length(time.Second), Unit: "a_-9"}, "10/1s unit=a_-9"},
	{"10/1s unit=abcdefghijklmnopqrstuvwxyz012345", algo.Rule{Kind: algo.Sliding, Limit: 10, Period: length(time.Second), Unit: "abcdefghijklmnopqrstuvwxyz012345"}, "10/1s unit=abcdefghijklmnopqrstuvwxyz012345"},
	{"9/1d unit=bytes tz=Europe/Berlin fixed", algo.Rule{Kind: algo.Fixed, Limit: 9, Period: length(day), Zone: "Europe/Berlin", Unit: "bytes"}, "9/1d fixed tz=Europe/Berlin unit=bytes"},
	{"100/1m unit=points burst=50 bucket", algo.Rule{Kind: algo.Bucket, Limit: 100, Period: length(time.Minute), Burst: 50, Unit: "points"}, "100/1m bucket burst=50 unit=points"},
	{"1000/1h counter unit=points", algo.Rule{Kind: algo.Counter, Limit: 1000, Period: length(time.Hour), Unit: "points"}, "1000/1h counter unit=points"},
	{"4 concurrent", algo.Rule{Kind: algo.Concurrent, Limit: 4}, "4 concurrent"},
	{"4concurrent", algo.Rule{Kind: algo.Concurrent, Limit: 4}, "4 concurrent"},
	{"unlimited", algo.Rule{Kind: algo.Unlimited}, "unlimited"},
}

func TestRuleTextRoundTrips(t *testing.T) {
	for _, c := range goodRules {
		t.Run(c.text, func(t *testing.T) {
			rule, err := algo.ParseRule(c.text)
			require.NoError(t, err)
			require.Equal(t, c.rule, rule)
			require.Equal(t, c.written, rule.String())
			again, err := algo.ParseRule(rule.String())
			require.NoError(t, err)
			require.Equal(t, rule, again)
		})
	}
}

var badRules = []struct {
	text   string
	column int
	says   string
}{
	{"", 1, "the rule is empty; write a rule such as"},
	{"   ", 1, "the rule is empty"},
	{"ten/1s", 1, `the limit is missing where "ten" is`},
	{"concurrent 4", 1, "the limit is missing"},
	{"NaN/1s", 1, `the limit is missing where "NaN" is`},
	{"Inf/1s", 1, "the limit is missing"},
	{"/1s", 1, `the limit is missing where "/1s" is`},
	{"-5/1s", 1, "the limit is negative; write 0 or more"},
	{"+5/1s", 1, `the limit begins with '+'`},
	{".5/1s", 1, `the limit begins with '.'`},
	{"0.2/1s", 1, "the limit is a fraction; write a whole number over a longer period, as 1/5s for 0.2/1s"},
	{"1e6/1s", 1, "the limit has an exponent; write all its digits"},
	{"10,000/1d", 3, "the limit has a comma"},
	{"10__000/1d", 3, "a stray _"},
	{"10_/1d", 3, "a stray _"},
	{"1000000000000001/1d", 1, "the limit is too large; write at most 1000000000000000"},
	{"99999999999999999999/1d", 1, "the limit is too large"},
	{"10", 3, `"/", "per" or "concurrent" is missing where the end is`},
	{"10 every 1s", 4, `missing where "every" is`},
	{"10/", 4, "a unit of time is missing where the end is"},
	{"10/5", 5, "a unit of time is missing"},
	{"10/1s5", 7, "a unit of time is missing"},
	{"10/0s", 4, "the period is 0; write 1 or more"},
	{"10/0_0s", 4, "the period is 0"},
	{"10/-1s", 4, "the period is negative"},
	{"10/1.5s", 4, "the period is a fraction"},
	{"10/1fortnight", 5, `unknown unit "fortnight"; known units: ns, us, ms, s, m, h, d`},
	{"10/S", 4, `unknown unit "S"`},
	{"10/30m1h", 7, `"h" follows a unit that is no larger`},
	{"10/1m1m", 6, `"m" follows a unit`},
	{"10/1000000h", 4, "the period is too long; write at most 3650d"},
	{"10/300y", 4, "the period is too long"},
	{"10/10000000000s", 4, "the period is too long"},
	{"10/3650d1ns", 9, "the period is too long"},
	{"10/9223372036854775808ns", 4, "the period is too large"},
	{"10/1w", 4, `calendar weeks and months are for fixed windows, and this rule is sliding; write 7d, or add "fixed"`},
	{"10/1mo bucket", 4, "this rule is bucket; write 30d"},
	{"10/2w fixed", 4, "a period of 2 calendar units; write 1w"},
	{"10/1w1d fixed", 6, "go with no other unit"},
	{"10/1d1mo fixed", 6, "go with no other unit"},
	{"10/2d fixed", 4, `the calendar has no window of 2d; write a period under a day, 1d, 1w or 1mo, or leave out "fixed"`},
	{"10/1y fixed", 4, "no window of 1y; write a period"},
	{"10/ 48 hours  fixed", 5, "no window of 48 hours; write a period"},
	{"unlimitd", 1, `the limit is missing where "unlimitd" is; write a rule such as "10/1s", "4 concurrent" or "unlimited"`},
	{" Unlimited", 2, `the limit is missing where "Unlimited" is; write a rule such as "10/1s", "4 concurrent" or "unlimited"`},
	{"10/1s slidding", 7, `unknown word "slidding"; known words: sliding, fixed, bucket`},
	{"10/1s paced", 7, `unknown word "paced"; known words: sliding, fixed, bucket, counter, pace`},
	{"10/1s pace bucket", 12, `"bucket" follows "pace"; keep one of them`},
	{"10/1s pace burst=5", 12, `burst belongs to bucket, and this rule is pace; add "bucket", or leave it out`},
	{"10/1s pace tz=UTC", 12, "tz belongs to fixed, and this rule is pace"},
	{"10/1w pace", 4, "this rule is pace; write 7d"},
	{"10/1s count", 7, `unknown word "count"; known words: sliding, fixed, bucket, counter`},
	{"10/1s counter fixed", 15, `"fixed" follows "counter"; keep one`},
	{"10/1s counter burst=5", 15, "burst belongs to bucket, and this rule is counter"},
	{"10/1s counter tz=UTC", 15, "tz belongs to fixed, and this rule is counter"},
	{"10/1w counter", 4, `and this rule is counter; write 7d, or add "fixed"`},
	{"10/1s fixed fixed", 13, `"fixed" follows "fixed"; keep one`},
	{"10/1s fixed bucket", 13, `"bucket" follows "fixed"`},
	{"10/1s burst=5", 7, "burst belongs to bucket, and this rule is sliding"},
	{"10/1s fixed burst=5", 13, "burst belongs to bucket, and this rule is fixed"},
	{"10/1s unit", 11, `"=" is missing where the end is; write unit=NAME, such as unit=tokens`},
	{"10/1s unit=", 12, "the name of the unit is missing; write unit=NAME"},
	{"10/1s unit=Tokens", 12, `the unit "Tokens" does not begin with one of a-z; write unit=NAME`},
	{"10/1s unit=9a", 12, `the unit "9a" does not begin with one of a-z`},
	{"10/1s unit=a.b", 12, `the unit "a.b" has a '.'; write unit=NAME`},
	{"10/1s unit=tökens", 12, `the unit "tökens" has a 'ö'`},
	{"10/1s unit=abcdefghijklmnopqrstuvwxyz0123456", 12, "has 33 bytes, at most 32 are allowed"},
	{"10/1s unit=a fixed unit=a", 20, "unit is written twice; keep one of them"},
	{"4 concurrent unit=a", 14, `"unit" follows "concurrent", which takes neither period nor option`},
	{"unlimited unit=a", 11, `"unit" follows "unlimited", which takes neither period nor option`},
	{"10/1s bucket burst", 19, `"=" is missing where the end is; write burst=N`},
	{"10/1s bucket burst=", 20, "the burst is missing"},
	{"10/1s bucket burst=-1", 20, "the burst is negative"},
	{"10/1s bucket burst=1.5", 20, "the burst is a fraction"},
	{"10/1s bucket burst=1000000000000001", 20, "the burst is too large"},
	{"10/1s bucket burst=0", 14, "a bucket of burst=0 never grants anything"},
	{"10/1s bucket burst=5 burst=5", 22, "burst is written twice"},
	{"10/1d fixed tz=Europe/Berlinn", 16, `the time zone "Europe/Berlinn" is unknown; write tz=UTC, or a name such as tz=Europe/Berlin`},
	{"10/1d fixed tz=utc", 16, `the time zone "utc" is unknown`},
	{"10/1d fixed tz=Local", 16, `the time zone "Local" is unknown`},
	{"10/1d fixed tz=Europe", 16, `the time zone "Europe" is unknown`},
	{"10/1d fixed tz=right/Europe/Berlin", 16, "is unknown"},
	{"10/1d fixed tz=posix/Europe/Berlin", 16, "is unknown"},
	{"10/1d fixed tz=../zoneinfo/UTC", 16, "is unknown"},
	{"10/1d fixed tz=/UTC", 16, "is unknown"},
	{"10/1d fixed tz=+01:00", 16, "is unknown"},
	{"10/1d fixed tz=CEST\x00", 16, "is unknown"},
	{"10/1d fixed tz=", 16, "the time zone is missing"},
	{"10/1d fixed tz", 15, `"=" is missing`},
	{"10/2d fixed tz=Europe/Berlin", 4, "the calendar has no window of 2d"},
	{"10/1d fixed tz=UTC tz=UTC", 20, "tz is written twice"},
	{"10/1d tz=UTC", 7, "tz belongs to fixed"},
	{"10/1s guard=50ms", 7, "a rule has no guard; write it beside the rules of the limit"},
	{"10/1s !", 7, `unknown word "!"`},
	{"10/1s µ!", 7, `unknown word "µ"`},
	{"4/1s concurrent", 6, `concurrency has no period; write "4 concurrent"`},
	{"4 concurrent burst=5", 14, `"burst" follows "concurrent"`},
	{"4 concurrent 5", 14, `"5" follows "concurrent"`},
	{"unlimited fixed", 11, `"fixed" follows "unlimited"`},
	{"unlimitedly", 1, "the limit is missing"},
	{"\xff", 1, "the limit is missing"},
	{"10/1s \x00", 7, "unknown word"},
}

func TestRuleTextIsRefusedWithColumnAndRemedy(t *testing.T) {
	for _, c := range badRules {
		t.Run(c.text, func(t *testing.T) {
			rule, err := algo.ParseRule(c.text)
			var wrong *algo.RuleError
			require.ErrorAs(t, err, &wrong)
			require.Zero(t, rule)
			require.Equal(t, c.text, wrong.Text)
			require.Equal(t, c.column, wrong.Column, err)
			require.Contains(t, err.Error(), c.says)
			require.Contains(t, err.Error(), wrong.Problem+"; "+wrong.Remedy)
		})
	}
}

func TestPeriodsBeyondTheLongestAreNoRules(t *testing.T) {
	for _, text := range []string{"5/1000000h", "5/300y", "5/10000000000s", "5/1000000h fixed", "5/300y bucket"} {
		t.Run(text, func(t *testing.T) {
			_, err := algo.ParseRule(text)
			require.ErrorContains(t, err, "the period is too long; write at most 3650d")
		})
	}
}

func TestFractionsAreNoRules(t *testing.T) {
	for _, text := range []string{"0.2/1s", "0.2/1s bucket", "2/1s bucket burst=0.66", "0.5 concurrent"} {
		t.Run(text, func(t *testing.T) {
			_, err := algo.ParseRule(text)
			require.ErrorContains(t, err, "is a fraction; write a whole number")
		})
	}
	t.Run("burst that is not written", func(t *testing.T) {
		require.Equal(t, int64(1), must(t, "1/5s bucket").Burst)
	})
}

func TestRuleErrorsStayShort(t *testing.T) {
	_, err := algo.ParseRule(strings.Repeat("x", 1<<16))
	require.Less(t, len(err.Error()), 1000)
}

func TestOnlyRatesCountTokensAndHaveASpan(t *testing.T) {
	for text, span := range map[string]time.Duration{
		"10/1s":         time.Second,
		"10/1h fixed":   time.Hour,
		"1/1mo fixed":   31 * day,
		"10/1m bucket":  time.Minute,
		"10/2m counter": 2 * time.Minute,
		"10/2m pace":    2 * time.Minute,
	} {
		require.True(t, must(t, text).CountsTokens(), text)
		require.Equal(t, span, must(t, text).Span(), text)
	}
	for _, text := range []string{"4 concurrent", "unlimited"} {
		require.False(t, must(t, text).CountsTokens(), text)
		require.Zero(t, must(t, text).Span(), text)
	}
}

func TestCompilePanicsOutOfRange(t *testing.T) {
	good := must(t, "10/1s")
	for name, c := range map[string]struct {
		change func(*algo.Rule, *algo.Allowance)
		says   string
	}{
		"no kind":        {func(r *algo.Rule, _ *algo.Allowance) { r.Kind = 0 }, "no kind"},
		"later kind":     {func(r *algo.Rule, _ *algo.Allowance) { r.Kind = 99 }, "kind 99"},
		"limit":          {func(r *algo.Rule, _ *algo.Allowance) { r.Limit = -1 }, "-1"},
		"large limit":    {func(r *algo.Rule, _ *algo.Allowance) { r.Limit = algo.MaxLimit + 1 }, "1000000000000001"},
		"burst":          {func(r *algo.Rule, _ *algo.Allowance) { r.Burst = -7 }, "-7"},
		"burst of none":  {func(r *algo.Rule, _ *algo.Allowance) { r.Burst = 7 }, "no bucket"},
		"no period":      {func(r *algo.Rule, _ *algo.Allowance) { r.Period.Length = 0 }, "0s"},
		"long period":    {func(r *algo.Rule, _ *algo.Allowance) { r.Period.Length = algo.MaxPeriod + 1 }, "87600h0m0.000000001s"},
		"sliding month":  {func(r *algo.Rule, _ *algo.Allowance) { r.Period.Months = 1 }, "months"},
		"sliding zone":   {func(r *algo.Rule, _ *algo.Allowance) { r.Zone = "Europe/Berlin" }, "Europe/Berlin"},
		"unknown zone":   {func(r *algo.Rule, _ *algo.Allowance) { r.Kind, r.Zone = algo.Fixed, "Mars/Olympus" }, "Mars/Olympus"},
		"two days fixed": {func(r *algo.Rule, _ *algo.Allowance) { *r = algo.Rule{Kind: algo.Fixed, Period: length(2 * day)} }, "48h"},
		"guard":          {func(_ *algo.Rule, a *algo.Allowance) { a.Guard = -1 }, "-1ns"},
		"unit of calls":  {func(r *algo.Rule, _ *algo.Allowance) { r.Unit = "call" }, `"call"`},
		"bad unit":       {func(r *algo.Rule, _ *algo.Allowance) { r.Unit = "Tokens" }, `"Tokens"`},
		"slots of units": {func(r *algo.Rule, _ *algo.Allowance) { *r = algo.Rule{Kind: algo.Concurrent, Unit: "tokens"} }, `"tokens"`},
		"ppm":            {func(_ *algo.Rule, a *algo.Allowance) { a.PPM = 1_000_001 }, "1000001"},
	} {
		t.Run(name, func(t *testing.T) {
			r, a := good, algo.Allowance{}
			c.change(&r, &a)
			defer func() { require.Contains(t, recover(), c.says) }()
			algo.Compile(r, a)
		})
	}
}
