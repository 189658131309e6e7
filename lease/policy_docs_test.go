package lease_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/lease"
)

// The page on rules shows policies and rules that are read as they stand there.
func TestThePageOnRulesIsRead(t *testing.T) {
	page, err := os.ReadFile("../docs/rules.md")
	require.NoError(t, err)
	policies := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	require.GreaterOrEqual(t, len(policies), 6)
	for i, p := range policies {
		_, err := lease.ParsePolicy(fmt.Sprint("policy ", i+1), p[1])
		require.NoError(t, err)
	}
	rules := 0
	for _, m := range regexp.MustCompile("`([0-9][^`]*/[^`]*|[0-9]+ concurrent)`").FindAllSubmatch(page, -1) {
		for text := range strings.SplitSeq(string(m[1]), ", ") {
			_, err := algo.ParseRule(text)
			require.NoError(t, err, text)
			rules++
		}
	}
	require.Greater(t, rules, 20)
}

// The page names all units of time that an error names, and reads them as it says.
func TestThePageOnRulesNamesTheUnitsOfTime(t *testing.T) {
	page, err := os.ReadFile("../docs/rules.md")
	require.NoError(t, err)
	_, periods, ok := strings.Cut(string(page), "**Periods.**")
	require.True(t, ok)
	periods, _, _ = strings.Cut(periods, "\n\n")
	_, err = algo.ParseRule("1/1x")
	_, known, ok := strings.Cut(err.Error(), "known units: ")
	require.True(t, ok, "%v", err)
	for _, unit := range regexp.MustCompile(`\b(?:[a-z]|[mnu]s|mo)\b`).FindAllString(known, -1) {
		require.Contains(t, periods, "`"+unit+"`")
	}
	units := regexp.MustCompile("`((?:[0-9]+ )?[a-z]+)`").FindAllStringSubmatch(periods, -1)
	require.Greater(t, len(units), 12)
	for _, m := range units {
		_, plain := algo.ParseRule("10 per " + m[1])
		_, fixed := algo.ParseRule("10 per " + m[1] + " fixed")
		require.True(t, plain == nil || fixed == nil, "%s: %v", m[1], plain)
	}
}
