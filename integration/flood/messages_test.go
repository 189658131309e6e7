package flood_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
	"ration/lease"
)

const (
	acquireAt = "ration.v1.default.p.0.acquire.flood"
	reportAt  = "ration.v1.default.p.0.report.flood"

	soundRequest = `{"v":1,"id":"shell-1.7f3a/1","keys":["flood/k"],"want":{"tokens":1},"need":{"tokens":1},"sent":"5ms","patience":"0s"}`
	soundReport  = `{"v":1,"holder":"shell-1.7f3a","sent":"6ms","counts":[{"id":"shell-1.7f3a/1","key":"flood/k","points":[{"count":1,"age":"1ms"}]}]}`
)

// said is what a coordinator answers: an error, or an outcome, or neither to a
// report.
type said struct {
	Outcome string
	Error   *struct{ Code, Message string }
}

// say sends a message and reads its answer, which is always JSON and either makes
// sense or says why the message did not.
func say(t *testing.T, nc *nats.Conn, subject string, body []byte) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	m, err := again(ctx, func(ctx context.Context) (*nats.Msg, error) { return nc.RequestWithContext(ctx, subject, body) })
	require.NoError(t, err, "%.200q", body)
	var s said
	require.NoError(t, json.Unmarshal(m.Data, &s), "%.200q answered %.200q", body, m.Data)
	if s.Error != nil {
		require.NotEmpty(t, s.Error.Message, "%.200q", body)
		require.NotEqual(t, "internal", s.Error.Code, "%.200q: %s", body, s.Error.Message)
	}
	return s
}

// TestMessagesThatMakeNoSense are each answered with what is wrong with them, and
// take nothing.
func TestMessagesThatMakeNoSense(t *testing.T) {
	l := serve(t, policy, brisk)
	nc := l.connect()
	bad := func(subject, body, says string) {
		t.Helper()
		got := say(t, nc, subject, []byte(body))
		require.NotNil(t, got.Error, "%.200q", body)
		require.Contains(t, got.Error.Message, says, "%.200q", body)
	}
	with := func(field string) string { return strings.Replace(soundRequest, `"v":1`, `"v":1,`+field, 1) }
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	bad(acquireAt, strings.Repeat("[", 60_000), "it is not JSON")
	bad(acquireAt, strings.Repeat(`{"a":`, 12_000)+"1"+strings.Repeat("}", 3), "it is not JSON")
	bad(acquireAt, deep, "it is not a JSON object")
	bad(acquireAt, with(`"patience":`+deep), "patience")
	bad(acquireAt, with(`"patience":"1s"`), "given twice")
	bad(acquireAt, strings.Replace(soundRequest, `"tokens":1}`, `"tokens":1,"tokens":2}`, 1), "given twice")
	bad(acquireAt, strings.Replace(soundRequest, `"v":1`, `"v":1,"v":2`, 1), "given twice")
	for _, number := range []string{"1e999", "-1", "9007199254740993", "1.5", "null", `"1"`, "99999999999999999999999999", "true"} {
		bad(acquireAt, strings.Replace(soundRequest, `"tokens":1`, `"tokens":`+number, 1), "want.tokens")
	}
	for _, d := range []string{"1e9s", "-5ms", "9999999999999999999h", "5", ""} {
		bad(acquireAt, strings.Replace(soundRequest, "5ms", d, 1), "sent")
	}
	for _, id := range []string{"", "x", "shell/1", "shell.zz/1", "shell.1/", "shell.1/18446744073709551616", strings.Repeat("n", 129) + ".1/1"} {
		bad(acquireAt, strings.Replace(soundRequest, "shell-1.7f3a/1", id, 1), "id")
	}
	bad(acquireAt, strings.Replace(soundRequest, "flood/k", "flood//k", 1), "empty")
	bad(acquireAt, strings.Replace(soundRequest, "flood/k", "flood/"+strings.Repeat("k", 1100), 1), "at most 1024")
	bad(acquireAt, strings.Replace(soundRequest, "flood/k", `flood/\ud800`, 1), "surrogate")
	bad(acquireAt, strings.Replace(soundRequest, "flood/k", "honest/k", 1), "tenant")
	bad(acquireAt, strings.Replace(soundRequest, "flood/k", "flood/\xff", 1), "UTF-8")
	bad(acquireAt, strings.Replace(soundRequest, `["flood/k"]`, `[`+strings.Repeat(`"flood/k",`, 8)+`"flood/k"]`, 1), "keys")
	bad(reportAt, strings.Replace(soundReport, `"count":1`, `"count":-1`, 1), "count")
	bad("ration.v1.default.p.0.nonsense.flood", soundRequest, "no verb")

	for _, sound := range []struct{ subject, body string }{{acquireAt, soundRequest}, {reportAt, soundReport}} {
		for i := range len(sound.body) {
			bad(sound.subject, sound.body[:i], "it is not JSON")
		}
	}
	l.honest.calls(20)
	s := l.summary()
	require.Equal(t, s.Stats.Leases, s.Stats.Granted, "nobody but the honest one was granted anything")
	got := say(t, nc, acquireAt, []byte(with(`"unknown":`+deep)))
	require.Nil(t, got.Error, "what is not known is passed over")
	require.Equal(t, "granted", got.Outcome)
	l.over()
}

// TestMessagesAtRandom: sound messages with bytes changed. Whatever comes of it, it
// is answered, and the law holds.
func TestMessagesAtRandom(t *testing.T) {
	n := many(4000, 100_000)
	l := serve(t, policy, brisk)
	nc := l.connect()
	random := rand.New(rand.NewPCG(1, 2))
	outcomes := map[string]int{}
	const marks = "{}[]\":,.-/0123456789eE\\\x00\xff nulltruefs"
	for i := range n {
		subject, body := acquireAt, []byte(soundRequest)
		if i%2 == 1 {
			subject, body = reportAt, []byte(soundReport)
		}
		for range 1 + random.IntN(4) {
			switch at := random.IntN(len(body)); random.IntN(3) {
			case 0:
				body[at] = marks[random.IntN(len(marks))]
			case 1:
				body = append(body[:at], body[at+1:]...)
			default:
				piece := body[at:min(len(body), at+random.IntN(20))]
				body = bytes.Replace(body, piece, append(bytes.Clone(piece), piece...), 1)
			}
		}
		got := say(t, nc, subject, body)
		switch {
		case got.Error != nil:
			outcomes["error "+got.Error.Code]++
		case got.Outcome != "":
			outcomes[got.Outcome]++
		default:
			outcomes["reply"]++
		}
	}
	t.Logf("%d messages: %v", n, outcomes)
	require.Positive(t, outcomes["error bad_request"])
	l.honest.calls(20)
	l.over()
}

// TestLargeMessages: of a megabyte, which are refused, and as large as one may be,
// full of keys that nobody knows. Nothing of them is kept.
func TestLargeMessages(t *testing.T) {
	n := many(200, 5000)
	l := serve(t, policy, brisk)
	nc := l.connect()
	large := append([]byte(soundRequest[:len(soundRequest)-1]+`,"pad":"`), bytes.Repeat([]byte("x"), 1<<20-1024)...)
	large = append(large, `"}`...)
	inbox, err := nc.SubscribeSync(nats.NewInbox())
	require.NoError(t, err)
	for range n {
		require.NoError(t, nc.PublishRequest(acquireAt, inbox.Subject, large))
		require.NoError(t, nc.PublishRequest(reportAt, inbox.Subject, large))
	}
	require.NoError(t, nc.FlushTimeout(harness.Patience))
	l.honest.calls(50)
	l.within("after the large ones", 0)
	got := say(t, nc, acquireAt, large)
	require.NotNil(t, got.Error)
	require.Equal(t, "bad_request", got.Error.Code)
	require.Contains(t, got.Error.Message, "at most 65536 are allowed")

	c := bus.NewClient(nc, bus.ClientConfig{})
	ended := 0
	for i := range n {
		r := lease.Report{Holder: id("stranger", 0).Holder, Sent: time.Since(born)}
		for k := range 600 {
			r.Counts = append(r.Counts, lease.Count{ID: id("stranger", uint64(k)), Keys: []lease.Key{lease.Key(fmt.Sprintf("flood/%d-%d", i, k))}})
		}
		ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
		reply, err := again(ctx, func(ctx context.Context) (lease.Reply, error) { return c.Report(ctx, r) })
		cancel()
		require.NoError(t, err)
		ended += len(reply.Ended)
	}
	require.Equal(t, n*600, ended)
	t.Logf("%d reports of leases on %d keys that nobody knows; %d are live", n, n*600, l.summary().Live)
	l.within("after the reports", 0)
	l.honest.calls(20)
	l.over()
}
