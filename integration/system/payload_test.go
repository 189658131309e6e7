package system

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
	"ration/lease"
)

// unread are values that no number of a message may have.
var unread = []string{
	"-1", "-9223372036854775808", "-0.5", "5.5", "1e3", "1e309", "-1e309", "9007199254740992", "99999999999999999999",
	`"5"`, `""`, "null", "true", "[]", "{}", "NaN", "Infinity", "0x10", "010", "+1", "",
}

// Sound messages.
const (
	soundRequest = `{"v":1,"id":"hand.1/2","keys":["k"],"want":{"tokens":2,"slots":1},"need":{"tokens":1,"slots":1},"sent":"2s","patience":"1s"}`
	soundReport  = `{"v":1,"holder":"hand.1","sent":"2s","heartbeat":true,"counts":[{"id":"hand.1/1","keys":["k"],` +
		`"points":[{"count":1,"age":"0s"}],"returned":1,"freed":1,"cut":1}],"given_up":[{"id":"hand.1/7","keys":["k"]}]}`
)

// TestABadMessageChangesNothing sends a real coordinator messages by hand with each
// number spoilt in each way, left out where it has to be there, and of another
// format: each is refused, named, and the state is what it was before.
func TestABadMessageChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteConfig{
		policy: "limits:\n  - key: k\n    rules: [10/1h, 4 concurrent]\n",
		lease:  func(c *lease.Config) { c.TokenTTL, c.SlotTTL = time.Hour, time.Hour }, // nothing expires meanwhile
	})
	nc, err := bus.Connect(s.url, bus.ConnectConfig{Wait: harness.Patience})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	h := &byHand{t: t, site: s, nc: nc}
	code, _ := h.say("acquire", `{"v":1,"id":"hand.1/1","keys":["k"],"want":{"tokens":5,"slots":2},"need":{"tokens":5,"slots":2},"sent":"1s","patience":"1s"}`)
	require.Empty(t, code)
	h.before = state(t, s)

	h.spoilNumbers()
	h.spoilFields()
	code, message := h.say("acquire", strings.Replace(soundRequest, `"v":1`, `"v":2`, 1))
	require.Equal(t, "format", code)
	require.Contains(t, message, "the message has format 2, this side speaks 1", "both sides are named")

	// Sound ones do change something, so the state looked at is not a blind one.
	code, message = h.say("report", soundReport)
	require.Empty(t, code, message)
	require.NotEqual(t, h.before, state(t, s))
	t.Logf("%d messages refused, and nothing changed", h.refused)
}

// byHand says messages to a coordinator byte by byte.
type byHand struct {
	t       *testing.T
	site    *site
	nc      *nats.Conn
	before  string // the state
	refused int
}

func (h *byHand) say(verb, body string) (code, message string) {
	h.t.Helper()
	ctx, cancel := soon(harness.Patience)
	defer cancel()
	m, err := h.nc.RequestWithContext(ctx, "ration.v1.default.p.0."+verb+".k", []byte(body))
	require.NoError(h.t, err, body)
	var answer struct {
		V     int `json:"v"`
		Error *struct{ Code, Message string }
	}
	require.NoError(h.t, json.Unmarshal(m.Data, &answer), "%s: %s", body, m.Data)
	require.Equal(h.t, bus.Format, answer.V)
	if answer.Error == nil {
		return "", string(m.Data)
	}
	return answer.Error.Code, answer.Error.Message
}

// bad says a sound message with something else in one place: it is refused, and
// changes nothing.
func (h *byHand) bad(verb, sound, old, new, wants string) {
	h.t.Helper()
	body := strings.Replace(sound, old, new, 1)
	require.NotEqual(h.t, sound, body, "%s is not in it", old)
	code, message := h.say(verb, body)
	require.Equal(h.t, wants, code, "%s: %s", body, message)
	require.NotEmpty(h.t, message)
	require.Equal(h.t, h.before, state(h.t, h.site), "%s changed something", body)
	h.refused++
}

// spoilNumbers gives each number and each duration values that it must not have.
func (h *byHand) spoilNumbers() {
	for _, v := range unread {
		for verb, fields := range map[string][]string{
			"acquire": {`"tokens":2`, `"slots":1`, `"tokens":1`, `"v":1`},
			"report":  {`"count":1`, `"returned":1`, `"freed":1`, `"cut":1`, `"v":1`},
		} {
			for _, field := range fields {
				sound := map[string]string{"acquire": soundRequest, "report": soundReport}[verb]
				name, _, _ := strings.Cut(field, ":")
				h.bad(verb, sound, field, name+":"+v, "bad_request")
			}
		}
	}
	for _, v := range []string{`"-1s"`, `"1.5s"`, `"1"`, `"soon"`, `"9223372037s"`, `"300y"`, "2", "null", `""`, `"NaNs"`, `"1e3s"`} {
		h.bad("acquire", soundRequest, `"patience":"1s"`, `"patience":`+v, "bad_request")
		h.bad("acquire", soundRequest, `"sent":"2s"`, `"sent":`+v, "bad_request")
		h.bad("report", soundReport, `"age":"0s"`, `"age":`+v, "bad_request")
		h.bad("report", soundReport, `"sent":"2s"`, `"sent":`+v, "bad_request")
	}
}

// spoilFields leaves out each field that has to be there, and gives others values
// that do not fit.
func (h *byHand) spoilFields() {
	for _, field := range []string{`"v":1,`, `"id":"hand.1/2",`, `"keys":["k"],`, `"want":{"tokens":2,"slots":1},`, `"need":{"tokens":1,"slots":1},`, `"sent":"2s",`, `,"patience":"1s"`} {
		h.bad("acquire", soundRequest, field, "", "bad_request")
	}
	for _, field := range []string{`"v":1,`, `"holder":"hand.1",`, `"id":"hand.1/1",`, `"keys":["k"],`, `"count":1,`, `,"age":"0s"`, `"sent":"2s",`} {
		h.bad("report", soundReport, field, "", "bad_request")
	}
	for _, c := range [][3]string{
		{`"tokens":2`, `"tokens":0`, "bad_request"}, // wants less than it needs
		{`"tokens":1`, `"tokens":3`, "bad_request"}, // needs more than it wants
		{`["k"]`, `[]`, "bad_request"},
		{`["k"]`, `["k","other"]`, "bad_request"},
		{`["k"]`, `["other"]`, "bad_request"},
		{`["k"]`, `[""]`, "bad_key"},
		{`["k"]`, `["k//x"]`, "bad_key"},
		{`["k"]`, `["k/` + strings.Repeat("x", 1023) + `"]`, "bad_key"},
		{`"hand.1/2"`, `"hand/2"`, "bad_request"},
		{`"hand.1/2"`, `"hand.1/-2"`, "bad_request"},
		{`"v":1`, `"v":2`, "format"},
		{`"v":1`, `"v":2,"news":[]`, "format"},
		{`"v":1`, `"v":0`, "format"},
	} {
		h.bad("acquire", soundRequest, c[0], c[1], c[2])
	}
	h.bad("report", soundReport, `"v":1`, `"v":2`, "format")
}

// state is what the ledger holds, but for what passes with time alone.
func state(t *testing.T, s *site) string {
	t.Helper()
	st := s.status()
	st.Instant, st.Stats.Turns, st.Clock = 0, 0, lease.Clock{} // a look takes a turn, too
	for i := range st.Keys {
		for j := range st.Keys[i].Windows {
			st.Keys[i].Windows[j].Full = 0
		}
	}
	return fmt.Sprintf("%+v", st)
}
