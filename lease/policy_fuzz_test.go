package lease_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

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
			require.GreaterOrEqual(t, l.Guard, 0*l.Guard)
		}
		again, err := lease.ParsePolicy("again", []byte(p.String()))
		require.NoError(t, err, "canonical text:\n%s", p)
		require.Equal(t, p.String(), again.String())
	})
}
