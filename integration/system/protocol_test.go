package system

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
	"ration/lease"
)

// varying are the fields of the page's answers whose values no coordinator need
// repeat: what is left of a time, and the epoch.
var varying = regexp.MustCompile(`"(epoch|token_ttl|slot_ttl|waited|wait|window)":"[^"]*"`)

// steady gives an answer with its varying fields made the same. A grant that did
// not wait has no "waited", and terms may come with any answer.
func steady(t *testing.T, body string) string {
	t.Helper()
	var fields map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &fields), body)
	if fields["outcome"] != "granted" {
		delete(fields, "terms")
	}
	flat, err := json.Marshal(fields)
	require.NoError(t, err)
	text := varying.ReplaceAllString(string(flat), `"$1":"some"`)
	return strings.Replace(text, `,"waited":"some"`, "", 1)
}

// TestProtocolPageIsWhatACoordinatorSpeaks plays every example of the page by
// hand against a real coordinator, under a policy of which its answers are true.
func TestProtocolPageIsWhatACoordinatorSpeaks(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteConfig{
		// The third example waits on "acme", which the first has taken all of.
		policy: `limits:
  - key: acme
    rules: [10/900ms]
  - key: acme/{stage}
    rules: [10/1s]
  - key: acme/prod/search
    rules: [4 concurrent]
  - key: lab/model
    rules: [2/1m, 100000/1m unit=tokens, 2400/1h unit=tokens]
`,
		lease: func(c *lease.Config) { c.Silence = 300 * time.Millisecond },
	})
	page, err := os.ReadFile("../../docs/protocol.md")
	require.NoError(t, err)
	nc, err := bus.Connect(s.url, bus.ConnectConfig{Wait: harness.Patience})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	say := func(subject, body string) string {
		t.Helper()
		ctx, cancel := soon(harness.Patience)
		defer cancel()
		m, err := nc.RequestWithContext(ctx, subject, []byte(body))
		require.NoError(t, err, body)
		return string(m.Data)
	}
	// The page tells of an id that was given up before.
	say("ration.v1.default.p.0.report.acme",
		`{"v":1,"holder":"shell-1.7f3a","sent":"12s","given_up":[{"id":"shell-1.7f3a/4","keys":["acme"]}]}`)

	answered := 0
	var reply string
	for _, block := range regexp.MustCompile("(?ms)^```json (\\w+) ?(\\S*)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		act, subject, body := block[1], block[2], block[3]
		switch {
		case act == "ask" && !strings.HasSuffix(subject, "admin.status"):
			reply = say(subject, body)
		case act == "answer":
			require.JSONEq(t, steady(t, body), steady(t, reply), "the page says %s\nand the coordinator %s", body, reply)
			answered++
		}
	}
	require.GreaterOrEqual(t, answered, 9, "the page has lost its examples")
	status := s.status()
	require.EqualValues(t, 9, status.Stats.Spent)
	require.EqualValues(t, 1900, status.Stats.UnitsSpent)
	require.EqualValues(t, 500, status.Stats.UnitsReturned)
	require.EqualValues(t, 3, status.Stats.Returned)
	require.EqualValues(t, 1, status.Stats.SlotsFreed)
	require.Equal(t, lease.Amount{}, status.Held, "the goodbye gave the rest back")
	t.Logf("%d answers of a coordinator are those of the page", answered)
}
