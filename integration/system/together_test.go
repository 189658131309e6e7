package system

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/integration/oracle"
)

// togetherPolicy limits an account, its users and its routes: a call is of a user and of
// a route, which no one path says.
const togetherPolicy = `
limits:
  - {key: acme, rules: [60/1s]}
  - {key: "acme/user/{u}", rules: [35/1s, 150/5s]}
  - {key: "acme/route/{r}", rules: [40/1s, 3 concurrent]}
`

// TestKeysNamedTogetherAreEachKept: workers of two users call two routes, each of all
// four pairs; one of them is killed and another stopped meanwhile. No rule of the account,
// of a user or of a route is broken by the instants of their spends, and each pair goes
// on being served.
func TestKeysNamedTogetherAreEachKept(t *testing.T) {
	h := harness.New(t)
	c := h.Coordinator(harness.CoordinatorConfig{Policy: h.Policy(togetherPolicy)})
	var fleet []*harness.Process
	var logs []string
	for i := range 6 {
		log := filepath.Join(t.TempDir(), "log")
		user, route := fmt.Sprintf("acme/user/%d", i%2), fmt.Sprintf("acme/route/%d", i/2%2)
		fleet = append(fleet, startWorker(h, c.NATS, fmt.Sprintf("w%d", i), "load", "", "--key", user, "--key", route, "-j", "4", "--log", log))
		logs = append(logs, log)
	}
	for _, log := range logs {
		hasLines(h, log, 10)
	}
	require.NoError(t, fleet[4].Kill())
	h.Stop(fleet[5])
	more := scaled(60, 600)
	for _, log := range logs[:4] {
		hasLines(h, log, lines(log)+more)
	}
	for _, p := range fleet[:4] {
		h.Stop(p)
	}
	spends, err := oracle.ReadFiles(logs...)
	if err != nil {
		require.ErrorIs(t, err, oracle.ErrTorn, "of the one that was killed")
	}
	judged := []oracle.Limit{{Key: "acme", Rules: oracle.MustRules("60/1s")}}
	for i := range 2 {
		judged = append(judged,
			oracle.Limit{Key: fmt.Sprintf("acme/user/%d", i), Rules: oracle.MustRules("35/1s, 150/5s")},
			oracle.Limit{Key: fmt.Sprintf("acme/route/%d", i), Rules: oracle.MustRules("40/1s, 3 concurrent")})
	}
	for _, l := range judged {
		require.Greater(t, len(oracle.Under(spends, l.Key)), more, "%s", l.Key)
	}
	require.Empty(t, oracle.Judge(spends, judged))
	h.Stop(c.Process)
}
