package algo_test

import (
	"fmt"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"ration/algo"
)

func FuzzParseRule(f *testing.F) {
	for _, c := range goodRules {
		f.Add(c.text)
	}
	for _, c := range badRules {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rule, err := algo.ParseRule(text)
		if err != nil {
			var wrong *algo.RuleError
			require.ErrorAs(t, err, &wrong)
			require.Zero(t, rule)
			require.Equal(t, text, wrong.Text)
			require.NotEmpty(t, wrong.Problem)
			require.NotEmpty(t, wrong.Remedy)
			require.GreaterOrEqual(t, wrong.Column, 1)
			require.LessOrEqual(t, wrong.Column, utf8.RuneCountInString(text)+1)
			return
		}
		again, err := algo.ParseRule(rule.String())
		require.NoError(t, err)
		require.Equal(t, rule, again)
		spec := algo.Compile(rule, algo.Allowance{Guard: time.Second, PPM: 200})
		w := spec.Window(at)
		require.Equal(t, spec.Max(), w.Free(at))
	})
}

func FuzzSteps(f *testing.F) {
	for i := range lawful {
		f.Add(uint8(i), []byte("0123456789abcdefghijklmnopqrstuvwxyz"))
		f.Add(uint8(i), []byte{2, 0, 0, 9, 5, 1, 0, 4, 5, 200, 1, 9, 9, 9, 7, 7, 1, 3, 3, 3, 0, 9, 4})
	}
	f.Fuzz(func(t *testing.T, rule uint8, steps []byte) {
		c := lawful[int(rule)%len(lawful)]
		spec := algo.Compile(must(t, c.rule), c.allowance)
		steps = steps[:min(len(steps), 1000)]
		m := newMachine(t, fmt.Sprintf("rule %d, steps %q", rule, steps), spec, &bytesChooser{steps})
		for m.step < 300 && len(m.choose.(*bytesChooser).left) > 0 {
			m.run(1)
		}
	})
}
