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
