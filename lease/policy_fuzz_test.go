package lease_test

import (
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// shards are what a policy is made of and what it must not have.
var shards = []string{
	"[", "]", "{", "}", ":", ": ", ", ", "- ", "-", "\n", "\n  ", "\n    ", "\n  - ", "\"", "'", "|", ">", "!x ", "&a ", "*a", "%", "@", "? ",
	"#", " # c\n", "\n---\n", "\n...\n", "key: ", "rules: ", "guard: ", "limits:", "unknown: ", "10/1s", "4 concurrent", "unlimited", "allow",
	"\\", "\\x41", "\\u00e9", "\\x4", "é", "{a}", "{{", "~", "0", "true", "<<: ", " ", "\t", "\r\n", "\x00", "\u0085", "\u2028", "\ufeff",
}

// Policies with a few shards put in, taken out and replaced are refused at
// places inside them, in words of ours, or read as policies whose canonical text means the same.
func TestBrokenPoliciesAreRefusedInPlace(t *testing.T) {
	whole := []string{
		lease.Demo().String(),
		"limits:\n- key: 'a/b'\n  guard: 50ms\n  rules:\n  - 5/1s # five\n  - \"6/1m bucket\"\n",
		"{unknown: refuse, limits: [{key: a, rules: [10/1s]}, {\"key\": \"b/{c}\", \"rules\": [\"unlimited\"]}]}\n",
	}
	read := 0
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 3))
		text := whole[r.IntN(len(whole))]
		for range 1 + r.IntN(3) {
			i := r.IntN(len(text) + 1)
			j := min(len(text), i+r.IntN(4))
			text = text[:i] + shards[r.IntN(len(shards))] + text[j:]
		}
		p, err := lease.ParsePolicy("p", []byte(text))
		if err == nil {
			read++
			require.Equal(t, p.String(), policy(t, p.String()).String(), "seed %d %q", seed, text)
			continue
		}
		lines := strings.Split(text+"\n", "\n")
		for _, e := range located(t, err) {
			require.LessOrEqual(t, e.Line, len(lines), "seed %d %q: %v", seed, text, e)
			require.NotContains(t, e.Remedy, "correct the YAML there", "seed %d %q: %v", seed, text, e)
			require.LessOrEqual(t, e.Column, utf8.RuneCountInString(lines[e.Line-1])+1, "seed %d %q: %v", seed, text, e)
		}
	}
	require.Positive(t, read)
}

// FuzzParsePolicy holds that any bytes are read without a panic: into errors
// that have their places, or into a policy with limits that have rules, whose
// canonical text is the same policy.
func FuzzParsePolicy(f *testing.F) {
	stories, err := os.ReadFile("testdata/policy/errors.txt")
	require.NoError(f, err)
	for _, c := range regexp.MustCompile(`(?m)^parse\n((?s:.*?))^----$`).FindAllSubmatch(stories, -1) {
		f.Add(c[1])
	}
	f.Add([]byte(lease.Demo().String()))
	f.Add([]byte("limits: [{key: 'it''s', rules: [\"\\x31/1s\"], guard: 0}] # end\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := lease.ParsePolicy("p", text)
		if err != nil {
			require.Nil(t, p)
			for _, e := range located(t, err) {
				require.Regexp(t, `(?s)^p:\d+:\d+: .+; .+`, e.Error())
			}
			return
		}
		require.NotEmpty(t, p.Limits)
		for _, l := range p.Limits {
			require.NotEmpty(t, l.Rules)
			require.Positive(t, l.Line)
			require.GreaterOrEqual(t, l.Guard, time.Duration(0))
		}
		again, err := lease.ParsePolicy("again", []byte(p.String()))
		require.NoError(t, err, "canonical text:\n%s", p)
		require.Equal(t, p.String(), again.String())
	})
}
