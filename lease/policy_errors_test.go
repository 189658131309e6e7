package lease_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestPolicyErrorsSayWhereAndWhatToDo reads the policies in testdata/policy and
// compares every word of what is said of them: B107, B110 and, for what makes no sense
// together, B109. A case is: parse, the policy,
// ----, and the errors, or the policy's canonical form.
func TestPolicyErrorsSayWhereAndWhatToDo(t *testing.T) {
	datadriven.Walk(t, "testdata/policy", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			text := d.Input
			if text != "" {
				text += "\n"
			}
			p, err := lease.ParsePolicy("p.yaml", []byte(text))
			if err != nil {
				require.Nil(t, p)
				return err.Error() + "\n"
			}
			return p.String()
		})
	})
}

// TestPolicyThatIsNoneIsRefusedAtOnce is B107: what is not a text, or more than any
// policy is, is refused before YAML is made of it: quickly, or this test does not end.
func TestPolicyThatIsNoneIsRefusedAtOnce(t *testing.T) {
	const most = 1 << 20
	good := "limits:\n  - key: a\n    rules: [10/1s]\n"
	fill := func(s string) string { return strings.Repeat(s, most/8/len(s)) }
	for name, c := range map[string]struct{ text, want string }{
		"tab as indentation":   {"limits:\n\t- key: a\n", "2:1: there is a tab; indent with spaces"},
		"tab before a comment": {good + "# é\t.\n", "4:4: there is a tab"},
		"NUL":                  {good + "\x00", "4:1: the control character U+0000 is no text"},
		"half of it NUL":       {good[:20] + strings.Repeat("\x00", 20), "3:2: the control character U+0000"},
		"binary":               {"\x7fELF\x02\x01", "1:1: the control character U+007F"},
		"not UTF-8":            {"limits:\n  - key: \"é\xff\"\n", "2:12: the byte 0xff is not UTF-8"},
		"UTF-16":               {"\xff\xfel\x00i\x00", "1:1: the byte 0xff is not UTF-8"},
		"old line ends":        {"limits:\r  - key: a\r", "1:8: the control character U+000D"},
		"too long":             {strings.Repeat("#", most) + "\n", "1:1: the policy has 1048577 bytes, at most 1048576 are allowed"},
		"alias bomb": {"a: &a [x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: &d [*c, *c, *c]\n",
			"1:4: anchors, aliases and merge keys (&, *, <<) have no place"},
		"ten megabytes of it": {"a: &a [x]\n" + strings.Repeat("b: [*a, *a, *a, *a]\n", 500_000), "at most 1048576 are allowed"},
		"deep lists":          {fill("["), "1:17: lists and mappings stand too deep in each other"},
		"deep mappings":       {fill("{a: "), "1:65: lists and mappings stand too deep in each other"},
		"deep dashes":         {fill("- "), "1:33: lists and mappings stand too deep in each other"},
		"many fields":         {fill("a: b\n"), "65:2: there are more than 64 fields in one mapping"},
		"many in braces":      {"{" + fill("a: b,"), "1:323: there are more than 64 fields in one mapping"},
		"many empty entries":  {fill("-\n"), "65:1: there are more than 64 fields and entries without a value"},
		"many empty fields":   {fill("- a:\n"), "65:4: there are more than 64 fields and entries without a value"},
		"many empty mappings": {"[" + fill("{a}, "), "1:323: there are more than 64 fields and entries without a value"},
		"many documents":      {fill("---\na\n"), "3:1: a second document begins"},
		"many blank lines":    {"a: |\n" + fill("\n"), "102:1: more than 100 lines in a row are blank"},
		"many closers":        {fill("]"), "1:1: there is no [ to this ]"},
		"many errors":         {"limits: [" + fill("-1,") + "]", "more errors from here on; correct those above first"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := lease.ParsePolicy("p.yaml", []byte(c.text))
			require.Nil(t, p)
			require.ErrorContains(t, err, c.want)
			require.LessOrEqual(t, len(located(t, err)), 11)
		})
	}
}

// located gives the single errors that err joins, after checking that each has
// a place, what is wrong and what to do, and that they stand in order.
func located(t testing.TB, err error) []*lease.PolicyError {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok, "not several errors: %v", err)
	var all []*lease.PolicyError
	for _, e := range joined.Unwrap() {
		var one *lease.PolicyError
		require.True(t, errors.As(e, &one), "no place: %v", e)
		require.NotEmpty(t, one.Problem)
		require.NotEmpty(t, one.Remedy)
		require.Positive(t, one.Line)
		require.Positive(t, one.Column)
		if n := len(all); n > 0 {
			before := all[n-1]
			require.True(t, before.Line < one.Line || before.Line == one.Line && before.Column <= one.Column, "out of order: %v", err)
		}
		all = append(all, one)
	}
	require.NotEmpty(t, all)
	return all
}

// Half of a file never means more than the file: it is refused, or it says the
// same in all limits but its last, which still has rules.
func TestHalfAPolicyIsNeverWider(t *testing.T) {
	whole := `unknown: refuse
limits:
  - key: "{account}"
    rules: [10000/1s bucket burst=5000]
  - key: "{account}/{stage}/search"
    guard: 50ms
    rules:
      - 100/1s
      - 4 concurrent
  - {key: 'acme/é', rules: [unlimited]}
`
	full := policy(t, whole)
	parsed := 0
	for n := range whole {
		p, err := lease.ParsePolicy("p.yaml", []byte(whole[:n]))
		if err != nil {
			located(t, err)
			continue
		}
		parsed++
		require.Equal(t, lease.RefuseUnknown, p.Unknown, "cut at %d", n)
		require.NotEmpty(t, p.Limits, "cut at %d", n)
		last := len(p.Limits) - 1
		require.Equal(t, full.Limits[:last], p.Limits[:last], "cut at %d", n)
		require.Equal(t, full.Limits[last].Pattern, p.Limits[last].Pattern, "cut at %d", n)
		require.NotEmpty(t, p.Limits[last].Rules, "cut at %d", n)
	}
	require.Positive(t, parsed)
}
