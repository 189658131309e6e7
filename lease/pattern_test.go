package lease

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPatternSegments(t *testing.T) {
	named := segment{named: true}
	literal := func(s string) segment { return segment{literal: s} }
	for text, want := range map[string][]segment{
		"a":                   {literal("a")},
		"{account}/b/{n-1_Z}": {named, literal("b"), named},
		"{{x}}":               {literal("{x}")},
		"{{{{x/a}}b{{":        {literal("{{x"), literal("a}b{")},
		"{{}}":                {literal("{}")},
		"a b/\x00/ ":          {literal("a b"), literal("\x00"), literal(" ")},
	} {
		p, got, wrong := parsePattern(text)
		require.Nil(t, wrong, text)
		require.Equal(t, want, got, text)
		require.Equal(t, text, p.String())
	}
}

// A star is a star: no pattern but {name} stands for other keys.
func TestWildcardsOfOthersAreLiteral(t *testing.T) {
	p, err := ParsePolicy("p", []byte(`limits: [{key: "a/*", rules: [1/1s]}, {key: "a/>", rules: [2/1s]}, {key: "b/**", rules: [3/1s]}, {key: "c/x*", rules: [4/1s]}]`))
	require.NoError(t, err)
	for key, line := range map[Key]int{"a/*": 0, "a/>": 1, "b/**": 2, "c/x*": 3, "a/*/below": 0} {
		m := p.Match(key)
		require.Len(t, m, 1, "%s", key)
		require.Same(t, &p.Limits[line], m[0].Limit, "%s", key)
	}
	for _, key := range []Key{"a", "a/b", "a/**", "a/b/c", "b/c", "b/*", "c/xy", "c/x"} {
		require.Empty(t, p.Match(key), "%s", key)
	}
}

func TestBadPatternsAreRefusedAtTheirFault(t *testing.T) {
	for text, index := range map[string]int{
		"": 0, "/": 0, "a//b": 2, "a/": 2, "{": 0, "{}": 0, "a/{}": 2, "x/{a}b": 2, "a{b}": 1, "}": 0, "a}": 1,
		"{a b}": 2, "{{a}": 3, "{{{a}}}": 2, "{é}": 1, "{a}/{b}/{a}": 8, "{{": -1, "{a/b}": 0,
	} {
		_, segments, wrong := parsePattern(text)
		if index < 0 {
			require.Nil(t, wrong, text)
			continue
		}
		require.NotNil(t, wrong, text)
		require.Nil(t, segments, text)
		require.Equal(t, index, wrong.index, "%q: %s", text, wrong.problem)
	}
}

// A pattern is too long if every key that it matches is.
func TestPatternIsAsLongAsItsShortestKey(t *testing.T) {
	for text, ok := range map[string]bool{
		strings.Repeat("a", MaxKeyLen):                true,
		strings.Repeat("a", MaxKeyLen+1):              false,
		"{name}/" + strings.Repeat("a", MaxKeyLen-2):  true,
		"{name}/" + strings.Repeat("a", MaxKeyLen-1):  false,
		"{n}/{{" + strings.Repeat("a", MaxKeyLen-3):   true,
		strings.Repeat("a/", MaxKeyLen/2-1) + "b":     true,
		strings.Repeat("a/", MaxKeyLen/2-1) + "b/{x}": false,
	} {
		_, _, wrong := parsePattern(text)
		require.Equal(t, ok, wrong == nil, "%.20s… of %d", text, len(text))
	}
}

func TestPatternsThatDifferOnlyInNamesAreTheSame(t *testing.T) {
	shapeOf := func(text string) string {
		p, _, wrong := parsePattern(text)
		require.Nil(t, wrong, text)
		return p.shape
	}
	require.Equal(t, shapeOf("{a}/b/{c}"), shapeOf("{x}/b/{y}"))
	all := map[string]string{}
	for _, text := range []string{"{a}", "a", "{{a}}", "{a}/{b}", "{a}/b", "a/{b}", "a/b", "{{}}", "{a}/{{b}}", "b", "a/b/{c}"} {
		s := shapeOf(text)
		require.NotContains(t, all, s, "%s and %s", text, all[s])
		all[s] = text
	}
}
