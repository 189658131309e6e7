package lease_test

import (
	"fmt"
	"testing"
	"time"

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

// TestLooseUnderThePlanThatBinds: by the most literal of the assignments, wherever it stands.
func TestLooseUnderThePlanThatBinds(t *testing.T) {
	for _, assign := range []string{
		"  acme/{b}: p\n  \"{a}/{b}\": p\n  \"{a}/x\": p\n",
		"  \"{a}/x\": p\n  \"{a}/{b}\": p\n  acme/{b}: p\n",
	} {
		p := policy(t, "limits:\n  - {key: acme/x/y, rules: [20/1s]}\n  - {key: beta/x/y, rules: [20/1s]}\nplans:\n  p: {rules: [10/1s]}\nassign:\n"+assign)
		var under []string
		for _, l := range p.Loose() {
			under = append(under, l.UnderKey.String())
		}
		require.Equal(t, []string{"acme/{b}", "{a}/x"}, under, assign)
	}
}

// TestGuardsOfAPlan: the rules of a plan have the guard of the limit that binds the key.
func TestGuardsOfAPlan(t *testing.T) {
	p := policy(t, `
limits:
  - {key: "{a}", rules: [10/1s], guard: 5ms}
  - {key: acme, rules: [10/1s], guard: 9ms}
  - {key: beta, rules: [10/1s], guard: 1ms}
  - {key: gamma, rules: [10/1s]}
plans:
  all: {rules: [10/1s]}
  one: {rules: [10/1s]}
  free: {rules: [10/1s]}
  none: {rules: [10/1s]}
assign:
  "{a}": all
  acme: one
  gamma: one
  acme/search: free
`[1:])
	for i, want := range [][2]time.Duration{{1 * time.Millisecond, 5 * time.Millisecond}, {0, 9 * time.Millisecond}, {}, {}} {
		shortest, longest := p.Guards(&p.Plans[i])
		require.Equal(t, want, [2]time.Duration{shortest, longest}, p.Plans[i].Name)
	}
}
