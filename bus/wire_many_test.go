package bus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// many gives a message with these requests.
func many(requests ...string) []byte {
	return []byte(`{"v":1,"sent":"0s","requests":[` + strings.Join(requests, ",") + `]}`)
}

// entry is a sound request of many.
func entry(seq int) string {
	return fmt.Sprintf(`{"id":"a.1/%d","keys":["k"],"want":{"tokens":1},"need":{"tokens":1},"patience":"0s"}`, seq)
}

// TestManyRequestsNameWhatIsWrong, and none of them is taken up then.
func TestManyRequestsNameWhatIsWrong(t *testing.T) {
	e := embed(t)
	f := granting()
	reached := 0
	f.acquire = func(_ context.Context, r lease.Request) (lease.Answer, error) {
		reached++
		return grantOf(r), nil
	}
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: f})
	hand := dialed(t, e.URL(), ConnectConfig{})
	most := make([]string, MaxRequests+1)
	for i := range most {
		most[i] = entry(i)
	}
	for _, c := range []struct {
		body []byte
		says string
	}{
		{many(), "0 requests in a message; send 1 to 256"},
		{many(most...), "field requests: it has more than 256 entries"},
		{many(entry(1), entry(2), entry(1)), "field requests[2].id: a.1/1 is that of requests[0] too"},
		{many(entry(1), strings.Replace(entry(2), `["k"]`, `["other"]`, 1)), `the keys are of tenant \"other\"`},
		{many(entry(1), strings.Replace(entry(2), `["k"]`, `["k","other"]`, 1)), "keys of two tenants"},
		{many(entry(1), strings.Replace(entry(2), `"1"`, `1`, 1), `7`), "field requests[2]: 7 is not an object"},
		{many(entry(1), strings.Replace(entry(2), `"patience":"0s"`, `"x":0`, 1)), "field requests[1].patience: it is missing"},
		{many(entry(1), strings.Replace(entry(2), `{"tokens":1}`, `{"tokens":-1}`, 1)), "field requests[1].want.tokens: -1 is not"},
		{many(entry(1), strings.Replace(entry(2), `"a.1/2"`, `"a"`, 1)), "field requests[1].id"},
		{many(entry(1), `null`), "field requests[1]: null is not an object"},
		{[]byte(`{"v":1,"sent":"0s","requests":{}}`), "field requests: {} is not a list"},
		{[]byte(`{"v":1,"sent":"0s","requests":null}`), "field requests"},
		{[]byte(`{"v":1,"requests":[` + entry(1) + `]}`), "field sent: it is missing"},
		{[]byte(`{"v":1,"sent":"0s","requests":[` + entry(1) + `],"requests":[]}`), "field requests: it is given twice"},
		{[]byte(`{"v":1,"sent":"0s","id":"a.1/9","requests":[` + entry(1) + `]}`), "field id: it stands beside requests"},
		{many(append(most[:200], `"`+strings.Repeat("x", MaxMessage)+`"`)...), "at most 65536 are allowed"},
	} {
		m, err := hand.RequestWithContext(bounded(t), "ration.v1.default.p.0.acquire.k", c.body)
		require.NoError(t, err)
		require.Contains(t, string(m.Data), `"code":"bad_request"`)
		require.Contains(t, string(m.Data), c.says)
	}
	require.Zero(t, reached)
}

// TestManyRequestsFillAMessage: as many as there may be, of the longest keys that
// fit, are answered in one message.
func TestManyRequestsFillAMessage(t *testing.T) {
	e := embed(t)
	led(t, e.URL(), `limits: [{key: "{tenant}/{key}", rules: [1/1d]}]`, ServeConfig{})
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	rs := make([]lease.Request, MaxRequests)
	for i := range rs {
		rs[i] = request(uint64(i), lease.Key("k/"+strings.Repeat("\x01", 10)))
	}
	as, err := c.AcquireAll(bounded(t), rs)
	require.NoError(t, err)
	require.Len(t, as, MaxRequests)
	for i, a := range as {
		require.Equal(t, rs[i].ID, a.ID)
		require.Equal(t, i == 0, a.Outcome == lease.Granted, "%d: %v", i, a.Outcome)
	}
	_, err = c.AcquireAll(bounded(t), append(rs, request(MaxRequests, "k/x")))
	require.ErrorIs(t, err, lease.ErrBadRequest)
	_, err = c.AcquireAll(bounded(t), nil)
	require.ErrorIs(t, err, lease.ErrBadRequest)
}

// TestManyRequestsHoldNobodyUp: those that are granted are answered at once, the
// one that waits keeps its place and finds its grant by itself.
func TestManyRequestsHoldNobodyUp(t *testing.T) {
	e := embed(t)
	led(t, e.URL(), `limits: [{key: "{tenant}/{key}", rules: [10/1d]}]`, ServeConfig{})
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	all := []lease.Request{request(1, "k/a"), request(2, "k/a"), request(3, "k/b")}
	all[1].Need.Tokens = 10
	as, err := c.AcquireAll(bounded(t), all)
	require.NoError(t, err)
	require.Equal(t, []lease.Outcome{lease.Granted, lease.Waiting, lease.Granted}, []lease.Outcome{as[0].Outcome, as[1].Outcome, as[2].Outcome})
	_, err = c.Report(bounded(t), lease.Report{Holder: holder, Counts: []lease.Count{
		{ID: as[0].ID, Keys: []lease.Key{"k/a"}, Returned: 10}},
	})
	require.NoError(t, err)
	a, err := c.Acquire(bounded(t), all[1])
	require.NoError(t, err)
	require.Equal(t, lease.Granted, a.Outcome)
	require.Equal(t, as[2].Epoch, a.Epoch)
}

// TestAnswersGiveBackWhatTheyTook also where a copy was superseded.
func TestAnswersGiveBackWhatTheyTook(t *testing.T) {
	for seed := range uint64(200) {
		d := draw{rand.New(rand.NewPCG(seed, 2))}
		as := make([]lease.Answer, 1+d.IntN(5))
		epoch := lease.Epoch{}
		for i := range as {
			if d.IntN(4) > 0 {
				as[i] = d.answer()
			}
		}
		for i := range as { // all are of one epoch
			if as[i].Outcome != 0 {
				epoch = as[i].Epoch
			}
		}
		for i := range as {
			as[i].Epoch = epoch
		}
		w := &writer{}
		w.answers(as)
		require.NoError(t, w.err, "seed %d", seed)
		got, err := decodeAnswers(w.b)
		require.NoError(t, err, "seed %d: %s", seed, w.b)
		require.Equal(t, as, got, "seed %d: %s", seed, w.b)
	}
}

// TestAnswersThatDoNotFitAreAFaultOfTheCoordinator: of another number, or of other
// requests.
func TestAnswersThatDoNotFitAreAFaultOfTheCoordinator(t *testing.T) {
	e := embed(t)
	hand := dialed(t, e.URL(), ConnectConfig{})
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	for _, body := range []string{
		`{"v":1,"answers":[],"epoch":"1.1"}`,
		`{"v":1,"answers":[{"id":"shell-1.7f3a/2","outcome":"ended"}],"epoch":"1.1"}`,
		`{"v":1,"answers":[{"id":"shell-1.7f3a/1","outcome":"granted"}],"epoch":"1.1"}`,
		`{"v":1,"answers":[{"error":{"code":"line_full","message":"m"}}],"epoch":"1.1"}`,
		`{"v":1,"answers":[{"id":"shell-1.7f3a/1","outcome":"ended"}]}`,
		`{"v":1,"epoch":"1.1"}`,
	} {
		sub, err := hand.SubscribeSync("ration.v1.default.p.0.acquire.acme")
		require.NoError(t, err)
		require.NoError(t, hand.Flush())
		done := make(chan error, 1)
		go func() {
			_, err := c.AcquireAll(bounded(t), []lease.Request{request(1, "acme")})
			done <- err
		}()
		m, err := sub.NextMsgWithContext(bounded(t))
		require.NoError(t, err)
		require.NoError(t, m.Respond([]byte(body)))
		require.Error(t, <-done, body)
		require.NoError(t, sub.Unsubscribe())
	}
}
