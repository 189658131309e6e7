package lease_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

func rule(t testing.TB, text string) algo.Rule {
	t.Helper()
	r, err := algo.ParseRule(text)
	require.NoError(t, err)
	return r
}

func TestPolicyIsReadAsWritten(t *testing.T) {
	p := policy(t, `
# every field in every style
"unknown": allow   # words
limits:
- key: "{account}"
  rules: [10000/1s bucket burst=5000]
- {key: 'it''s/"{{x}}"', rules: ["500 per minute"], guard: "0"}
-
  rules:
    - 100/1s   # a comment
    - '4 concurrent'
  guard: 1m0.5s
  key: a/{b}/search
- key: "\x41\u00e9\U0001f600\ud83d\ude00\"\\/b"
  guard: 0
  rules: [unlimited]
`[1:])
	require.Equal(t, lease.AllowUnknown, p.Unknown)
	require.Len(t, p.Limits, 4)
	for i, want := range []lease.Limit{
		{Rules: []algo.Rule{rule(t, "10000/1s bucket burst=5000")}, Line: 4},
		{Rules: []algo.Rule{rule(t, "500/1m")}, Line: 6},
		{Rules: []algo.Rule{rule(t, "100/1s"), rule(t, "4 concurrent")}, Guard: time.Minute + time.Second/2, Line: 8},
		{Rules: []algo.Rule{rule(t, "unlimited")}, Line: 13},
	} {
		want.Pattern = p.Limits[i].Pattern
		require.Equal(t, want, p.Limits[i])
		require.Equal(t, []string{"{account}", `it's/"{{x}}"`, "a/{b}/search", `Aé😀😀"\/b`}[i], want.Pattern.String())
	}
}

func TestPolicyIsReadAlikeWithOtherLineEndsAndAMark(t *testing.T) {
	text := "limits:\n  - key: a\n    rules: [10/1s]\n\n  - key: b\n    rules: [20/1s]\n"
	want := policy(t, text)
	require.Equal(t, want, policy(t, strings.ReplaceAll(text, "\n", "\r\n")))
	require.Equal(t, want, policy(t, "\xef\xbb\xbf"+text))
	require.Equal(t, want, policy(t, strings.TrimSuffix(text, "\n")))
}

// TestZeroBlocksAndOnlyUnlimitedDoesNot is B92: 0 blocks all, and only the word switches
// off. See also TestWhatIsNotLimitedIsCounted.
func TestZeroBlocksAndOnlyUnlimitedDoesNot(t *testing.T) {
	p := policy(t, `limits: [{key: none, rules: [0/1s]}, {key: all, rules: [unlimited]}, {key: slots, rules: [0 concurrent]}]`)
	kinds := map[string]algo.Kind{"none": algo.Sliding, "all": algo.Unlimited, "slots": algo.Concurrent}
	for _, l := range p.Limits {
		require.Len(t, l.Rules, 1)
		require.Equal(t, kinds[l.Pattern.String()], l.Rules[0].Kind)
		require.Zero(t, l.Rules[0].Limit)
	}
	for _, bad := range []string{"rules: [-1/1s]", "rules: [-1]", "rules: []", "rules:", "rules: [null]", "rules: null", "guard: 1ms", "rules: [-1 concurrent]"} {
		_, err := lease.ParsePolicy("p.yaml", []byte("limits:\n  - key: a\n    "+bad+"\n"))
		require.Error(t, err, bad)
		require.Equal(t, 1, len(located(t, err)), bad)
	}
}

func TestCanonicalTextIsThePolicyAgain(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := policy(t, randomPolicy(r, 1+r.IntN(12)))
		again := policy(t, p.String())
		require.Equal(t, p.String(), again.String(), "seed %d", seed)
		for i := range p.Limits {
			again.Limits[i].Line = p.Limits[i].Line
		}
		require.Equal(t, p.Limits, again.Limits, "seed %d\n%s", seed, p)
		require.Equal(t, p.Unknown, again.Unknown, "seed %d", seed)
	}
	require.Equal(t, "unknown: refuse\nlimits:\n  - key: \"a\\u000a\\\"\\\\\\U000e0001\"\n    rules: [10/1s, 4 concurrent]\n    guard: 1h\n",
		policy(t, `limits: [{key: "a\n\"\\\U000E0001", rules: [10/s, 4 concurrent], guard: 60m}]`).String())
	for guard, want := range map[string]string{"90s": "1m30s", "2h0m1s": "2h0m1s", "600s": "10m", "20h": "20h", "1500us": "1.5ms"} {
		require.Contains(t, policy(t, "limits: [{key: a, rules: [1/s], guard: "+guard+"}]").String(), "guard: "+want+"\n")
	}
}

// pieces are segments of patterns; the names differ so that no pattern has one
// twice.
var pieces = []string{"a", "b", "c", "{{x}}", "é", "{%d}", "{%d}", "{%d}"}

// randomPolicy gives the text of a policy of up to n limits.
func randomPolicy(r *rand.Rand, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "unknown: %s\nlimits:\n", []string{"allow", "refuse"}[r.IntN(2)])
	seen := map[string]bool{}
	for range n {
		var segments, shape []string
		for i := range 1 + r.IntN(4) {
			piece := pieces[r.IntN(len(pieces))]
			shape = append(shape, piece)
			segments = append(segments, strings.ReplaceAll(piece, "%d", fmt.Sprint("n", i)))
		}
		if s := strings.Join(shape, "/"); !seen[s] {
			seen[s] = true
			fmt.Fprintf(&b, "  - key: %q\n    rules: [%d/1s, %d concurrent]\n    guard: %dms\n", strings.Join(segments, "/"), r.IntN(99), r.IntN(9), r.IntN(3)*50)
		}
	}
	return b.String()
}

// bruteMatch gives, for each prefix of the key, the most literal pattern of all
// that match it: what Match does, by trying every one.
func bruteMatch(p *lease.Policy, key string) []string {
	var found []string
	segments := strings.Split(key, "/")
	for depth := 1; depth <= len(segments); depth++ {
		best, bestMarks := "", ""
		for _, l := range p.Limits {
			steps := strings.Split(l.Pattern.String(), "/")
			marks := "" // a literal sorts before a name
			for i, s := range steps {
				switch {
				case len(steps) != depth:
				case strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "{{"):
					marks += "2"
				case strings.NewReplacer("{{", "{", "}}", "}").Replace(s) == segments[i]:
					marks += "1"
				}
			}
			if len(marks) == depth && (best == "" || marks < bestMarks) {
				best, bestMarks = l.Pattern.String(), marks
			}
		}
		if best != "" {
			found = append(found, strings.Join(segments[:depth], "/")+" by "+best)
		}
	}
	return found
}

func TestMatchGivesTheMostLiteralPatternOfEachDepth(t *testing.T) {
	matched := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		p := policy(t, randomPolicy(r, 1+r.IntN(60)))
		for range 40 {
			var segments []string
			for range 1 + r.IntN(6) {
				segments = append(segments, []string{"a", "b", "c", "{x}", "{{x}}", "é", "z", "{n0}"}[r.IntN(8)])
			}
			key := strings.Join(segments, "/")
			var got []string
			for _, m := range p.Match(lease.Key(key)) {
				got = append(got, string(m.Prefix)+" by "+m.Limit.Pattern.String())
			}
			require.Equal(t, bruteMatch(p, key), got, "seed %d key %q\n%s", seed, key, p)
			matched += len(got)
		}
	}
	require.Greater(t, matched, 10_000)
}

func TestMatchTakesAnyBytesAndNoEmptySegment(t *testing.T) {
	p := policy(t, `limits: [{key: "{a}", rules: [1/1s]}, {key: "{a}/{b}", rules: [1/1s]}, {key: "{a}/\0", rules: [1/1s]}]`)
	require.Len(t, p.Match("\xff\xfe/\xff"), 2)
	require.Equal(t, "{a}/\x00", p.Match("a/\x00")[1].Limit.Pattern.String())
	require.Equal(t, "{a}/{b}", p.Match("a/\x00\x00")[1].Limit.Pattern.String())
	require.Empty(t, p.Match(""))
	require.Empty(t, p.Match("/a"))
	require.Len(t, p.Match("a/"), 1)
	require.Empty(t, new(lease.Policy).Match("a"))
	require.Len(t, p.Match(lease.Key(strings.Repeat("a/", 500)+"a")), 2)
}

// large is a policy of 10,000 limits whose keys all begin alike.
func large(t testing.TB) *lease.Policy {
	var b strings.Builder
	b.WriteString("limits:\n  - {key: \"{a}\", rules: [1/1s]}\n  - {key: \"{a}/{b}\", rules: [1/1s]}\n")
	for i := range 9_998 {
		fmt.Fprintf(&b, "  - key: \"t%d/{s}/m%d\"\n    rules: [10/1s]\n", i%100, i)
	}
	return policy(t, b.String())
}

func TestMatchAllocatesItsResultAlone(t *testing.T) {
	p := large(t)
	require.Len(t, p.Limits, 10_000)
	for key, want := range map[lease.Key]int{"t7/prod/m107": 3, "t7/prod/m108": 2, "x/y/z": 2, "x": 1} {
		require.Len(t, p.Match(key), want)
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { p.Match(key) }), 1.0, "key %s", key)
	}
}

func BenchmarkMatch(b *testing.B) {
	p := large(b)
	b.ReportAllocs()
	for b.Loop() {
		p.Match("t7/prod/m107")
	}
}

func TestDemoIsReadyToUse(t *testing.T) {
	p := lease.Demo()
	require.Equal(t, lease.RefuseUnknown, p.Unknown)
	m := p.Match("demo")
	require.Len(t, m, 1)
	require.Equal(t, []algo.Rule{rule(t, "5/1s"), rule(t, "12/3s")}, m[0].Limit.Rules)
	require.Equal(t, 60*time.Millisecond, m[0].Limit.Guard)
	require.Equal(t, "{name}", p.Match("anything/else")[0].Limit.Pattern.String())
}
