package lease_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// B109: a child that allows more than its parent is named.
func TestRulesThatCanNeverBindAreNamed(t *testing.T) {
	p := policy(t, `
limits:
  - {key: "{account}", rules: [10/1s, 100/1m bucket burst=50, 4 concurrent]}
  - {key: "{account}/search", rules: [20/1s, 100/1m bucket burst=60, 9/1s fixed, 4 concurrent, 30/1s unit=tokens]}
  - {key: "acme", rules: [1000/1s, 90 concurrent]}
  - {key: "acme/search", rules: [20/1s, 5 concurrent]}
  - {key: "other/{x}/deep", rules: [11/1s, 10/1m]}
plans:
  free: {rules: [10/1s, 20/1m]}
  gold: {rules: [11/1s, 9 concurrent]}
assign:
  "{account}": gold
  "{account}/export": free
  "other": free
`[1:])
	var told []string
	for _, l := range p.Loose() {
		told = append(told, fmt.Sprintf("%d %s %q %s < %d %s %q %s", l.Line, l.Key, l.Plan, l.Rule, l.UnderLine, l.UnderKey, l.UnderPlan, l.Under))
	}
	require.Equal(t, []string{
		`3 {account}/search "" 20/1s < 2 {account} "" 10/1s`,
		`3 {account}/search "" 100/1m bucket burst=60 < 2 {account} "" 100/1m bucket burst=50`,
		`5 acme/search "" 20/1s < 11 {account} "gold" 11/1s`,
		`6 other/{x}/deep "" 11/1s < 2 {account} "" 10/1s`,
		`11 {account} "gold" 11/1s < 2 {account} "" 10/1s`,
		`11 {account} "gold" 9 concurrent < 2 {account} "" 4 concurrent`,
	}, told)
	require.Empty(t, policy(t, "limits: [{key: a, rules: [10/1s]}, {key: a/b, rules: [10/1s, 5/1s fixed]}]").Loose())
}
