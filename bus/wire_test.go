package bus

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// draw makes messages at random, leaning to the edges.
type draw struct{ *rand.Rand }

func (d draw) number() int64 {
	return []int64{0, 1, 7, maxNumber, d.Int64N(maxNumber)}[d.IntN(5)]
}

func (d draw) duration() time.Duration {
	return time.Duration([]int64{0, 1, 999, 1e3, 1e6, 1e9, 15e8, math.MaxInt64, d.Int64()}[d.IntN(9)])
}

func (d draw) holder() lease.Holder {
	names := []string{"a", "a.b", "a/b", "shell 1", "é\u2028", "\"\\", "\x01\x7f", strings.Repeat("n", maxNameLen)}
	return lease.Holder{Name: names[d.IntN(len(names))], Incarnation: []uint64{0, 1, math.MaxUint64, d.Uint64()}[d.IntN(4)]}
}

func (d draw) id() lease.ID {
	return lease.ID{Holder: d.holder(), Seq: []uint64{0, 1, math.MaxUint64, d.Uint64()}[d.IntN(4)]}
}

func (d draw) ids() (ids []lease.ID) {
	for range d.IntN(3) {
		ids = append(ids, d.id())
	}
	return ids
}

func (d draw) key() lease.Key {
	return lease.Key(awkward[d.IntN(len(awkward))])
}

func (d draw) keys() (keys []lease.Key) {
	for range 1 + d.IntN(MaxKeys) {
		keys = append(keys, d.key())
	}
	return keys
}

func (d draw) amount() lease.Amount { return lease.Amount{Tokens: d.number(), Slots: d.number()} }

func (d draw) request() lease.Request {
	return lease.Request{
		ID: d.id(), Keys: d.keys(), Want: d.amount(), Need: d.amount(), Sent: d.duration(), Patience: d.duration(),
	}
}

func (d draw) answer() lease.Answer {
	a := lease.Answer{
		ID: d.id(), Outcome: lease.Outcome(1 + d.IntN(4)), Granted: d.amount(), TokenTTL: d.duration(), SlotTTL: d.duration(),
		Waited: d.duration(), Epoch: lease.Epoch{Number: d.Uint64(), Mark: d.Uint64()},
		Terms: lease.Terms{Window: d.duration(), Concurrent: d.IntN(2) == 0, Unlimited: d.IntN(2) == 0},
	}
	if a.Outcome == lease.Refused {
		a.Refusal = lease.Refusal{Reason: lease.ErrTooLate, Rule: "10/1s", Wait: d.duration()}
		if d.IntN(2) == 0 {
			a.Refusal.Key = d.key()
		}
	}
	return a
}

func (d draw) report() lease.Report {
	r := lease.Report{Holder: d.holder(), Sent: d.duration(), Heartbeat: d.IntN(2) == 0, Goodbye: d.IntN(2) == 0}
	for range d.IntN(4) {
		c := lease.Count{ID: d.id(), Keys: d.keys(), Returned: d.number(), Freed: d.number(), Cut: d.number()}
		for range d.IntN(3) {
			c.Points = append(c.Points, lease.Point{Count: d.number(), Age: d.duration()})
		}
		r.Counts = append(r.Counts, c)
	}
	for range d.IntN(3) {
		r.GivenUp = append(r.GivenUp, lease.GivenUp{ID: d.id(), Keys: d.keys()})
	}
	return r
}

func (d draw) reply() lease.Reply {
	r := lease.Reply{Epoch: lease.Epoch{Number: d.Uint64(), Mark: d.Uint64()}, Ended: d.ids(), Acknowledged: d.ids()}
	for range d.IntN(3) {
		r.Renewed = append(r.Renewed, lease.Renewal{ID: d.id(), SlotTTL: d.duration()})
	}
	return r
}

func TestWireGivesBackWhatItTook(t *testing.T) {
	for seed := range uint64(400) {
		d := draw{rand.New(rand.NewPCG(seed, 1))}
		same(t, seed, d.request(), encodeRequest, decodeRequest)
		same(t, seed, d.answer(), encodeAnswer, decodeAnswer)
		same(t, seed, d.reply(), encodeReply, decodeReply)
		same(t, seed, lease.Recall{Holder: d.holder(), Key: d.key(), Slots: d.number()}, encodeRecall, decodeRecall)

		report := d.report()
		messages, err := encodeReport(report)
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, report, joined(t, messages), "seed %d", seed)

		key := d.key()
		back, err := decodeQuestion(encodeQuestion(key))
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, key, back, "seed %d", seed)
	}
}

// same leaves out what the bounds refuse: eight keys of 1 KiB, escaped.
func same[T any](t *testing.T, seed uint64, m T, encode func(T) ([]byte, error), decode func([]byte) (T, error)) {
	t.Helper()
	body, err := encode(m)
	require.NoError(t, err, "seed %d: %+v", seed, m)
	back, err := decode(body)
	require.NoError(t, err, "seed %d: %s", seed, body)
	require.Equal(t, m, back, "seed %d: %s", seed, body)
}

func joined(t *testing.T, messages [][]byte) lease.Report {
	t.Helper()
	var all lease.Report
	for i, m := range messages {
		require.LessOrEqual(t, len(m), MaxMessage)
		r, err := decodeReport(m)
		require.NoError(t, err)
		r.Counts, r.GivenUp = append(all.Counts, r.Counts...), append(all.GivenUp, r.GivenUp...)
		if i > 0 {
			require.Equal(t, all.Holder, r.Holder)
			require.Equal(t, all.Sent, r.Sent)
			require.Equal(t, all.Heartbeat, r.Heartbeat)
			require.Equal(t, all.Goodbye, r.Goodbye)
		}
		all = r
	}
	return all
}

func TestKeysStayApartOnTheWire(t *testing.T) {
	seen := map[string]bool{}
	for _, tenant := range awkward {
		key := lease.Key(tenant)
		body, err := encodeRequest(request(1, key))
		require.NoError(t, err)
		require.False(t, seen[string(body)], "%q is written like another", tenant)
		seen[string(body)] = true
		r, err := decodeRequest(body)
		require.NoError(t, err)
		require.Equal(t, []lease.Key{key}, r.Keys)
	}
}

const sound = `{"v":1,"id":"a.1/1","keys":["k"],"want":{"tokens":1},"need":{"tokens":1},"sent":"0s","patience":"0s"}`

func TestRequestNamesTheFieldThatIsWrong(t *testing.T) {
	_, err := decodeRequest([]byte(sound))
	require.NoError(t, err)
	for _, c := range []struct{ replace, with, code, says string }{
		{`{"tokens":1},"need"`, `{"tokens":-1},"need"`, "bad_request", "field want.tokens: -1 is not a whole number"},
		{`{"tokens":1},"need"`, `{"tokens":1.5},"need"`, "bad_request", "field want.tokens: 1.5 is not"},
		{`{"tokens":1},"need"`, `{"tokens":1e3},"need"`, "bad_request", "field want.tokens: 1e3 is not"},
		{`{"tokens":1},"need"`, `{"tokens":9007199254740992},"need"`, "bad_request", "field want.tokens"},
		{`{"tokens":1},"need"`, `{"tokens":"1"},"need"`, "bad_request", "field want.tokens"},
		{`{"tokens":1},"need"`, `{"tokens":null},"need"`, "bad_request", "field want.tokens: null is no value"},
		{`{"tokens":1},"need"`, `{"tokens":NaN},"need"`, "bad_request", "not JSON"},
		{`{"tokens":1},"need"`, `{"tokens":1,"tokens":2},"need"`, "bad_request", "field want.tokens: it is given twice"},
		{`{"tokens":1},"need"`, `7,"need"`, "bad_request", "field want: 7 is not an object"},
		{`"want":{"tokens":1},`, ``, "bad_request", "field want: it is missing"},
		{`"sent":"0s",`, ``, "bad_request", "field sent: it is missing"},
		{`"0s"}`, `"-1s"}`, "bad_request", "field patience"},
		{`"0s"}`, `"1.5s"}`, "bad_request", "field patience"},
		{`"0s"}`, `"s"}`, "bad_request", "field patience"},
		{`"0s"}`, `"+1s"}`, "bad_request", "field patience"},
		{`"0s"}`, `"1d"}`, "bad_request", "field patience"},
		{`"0s"}`, `"9223372037s"}`, "bad_request", "field patience"},
		{`"0s"}`, `"99999999999999999999ns"}`, "bad_request", "field patience"},
		{`"0s"}`, `5}`, "bad_request", "field patience"},
		{`"a.1/1"`, `"a.1"`, "bad_request", "field id"},
		{`"a.1/1"`, `"a/1"`, "bad_request", "field id"},
		{`"a.1/1"`, `".1/1"`, "bad_request", "field id: the holder has no name"},
		{`"a.1/1"`, `"a.01/1"`, "bad_request", "field id"},
		{`"a.1/1"`, `"a.A/1"`, "bad_request", "field id"},
		{`"a.1/1"`, `"a.1/-1"`, "bad_request", "field id"},
		{`"a.1/1"`, `"a.1/18446744073709551616"`, "bad_request", "field id"},
		{`"a.1/1"`, `1`, "bad_request", "field id: 1 is not a string"},
		{`"a.1/1"`, `"` + strings.Repeat("n", maxNameLen+1) + `.1/1"`, "bad_request", "field id"},
		{`["k"]`, `[]`, "bad_request", "field keys: it is empty"},
		{`["k"]`, `"k"`, "bad_request", "field keys"},
		{`["k"]`, `["k",7]`, "bad_request", "field keys[1]"},
		{`["k"]`, `[null]`, "bad_request", "field keys[0]"},
		{`["k"]`, `["a","a","a","a","a","a","a","a","a"]`, "bad_request", "field keys: it has more than 8 entries"},
		{`["k"]`, `["a//b"]`, "bad_key", "field keys[0]: segment 2"},
		{`["k"]`, `[""]`, "bad_key", "field keys[0]"},
		{`["k"]`, `["\ud800"]`, "bad_request", "surrogate"},
		{`["k"]`, `["\ud800\u0041"]`, "bad_request", "surrogate"},
		{`["k"]`, `["\udc00"]`, "bad_request", "surrogate"},
		{`["k"]`, `[{"key64":"?"}]`, "bad_request", "field keys[0].key64"},
		{`["k"]`, `[{}]`, "bad_request", "field keys[0].key64: it is missing"},
		{`["k"]`, "[\"\xff\"]", "bad_request", "UTF-8"},
		{`"v":1,`, ``, "bad_request", "field v: it is missing"},
		{`"v":1,`, `"v":"1",`, "bad_request", "field v"},
		{`"v":1,`, `"v":1,"v":1,`, "bad_request", "field v: it is given twice"},
		{`"v":1,`, `"v":2,`, "format", "format 2, this side speaks 1"},
		{`"v":1,`, `"v":0,`, "format", "format 0, this side speaks 1"},
		{sound, ``, "bad_request", "not JSON"},
		{sound, `[]`, "bad_request", "not a JSON object"},
		{sound, `null`, "bad_request", "not a JSON object"},
		{sound, sound + sound, "bad_request", "not JSON"},
		{sound, sound + strings.Repeat(" ", MaxMessage), "bad_request", "at most 65536 are allowed"},
	} {
		body := strings.Replace(sound, c.replace, c.with, 1)
		require.NotEqual(t, sound, body)
		_, err := decodeRequest([]byte(body))
		require.ErrorContains(t, err, c.says, "%.200s", body)
		require.Equal(t, c.code, lease.Code(err), "%.200s", body)
	}
}

func TestReaderIgnoresWhatIsNewAndReadsAllSpellings(t *testing.T) {
	body := ` {"new":[{"a":"]}\"","b":[null,-1.5e9,true]}], "v" : 1 ,"\u0069d":"\u0061.1\/1","keys":["\ud83d\ude00\n\t\"",` +
		`{"key64":"/w==","new":0}],"want":{"tokens":1,"units":{}},"need":{},` + "\r\n\t" + `"sent":"1h","patience":"2m"} `
	r, err := decodeRequest([]byte(body))
	require.NoError(t, err)
	require.Equal(t, lease.Request{
		ID:   lease.ID{Holder: lease.Holder{Name: "a", Incarnation: 1}, Seq: 1},
		Keys: []lease.Key{"😀\n\t\"", "\xff"}, Want: lease.Amount{Tokens: 1},
		Sent: time.Hour, Patience: 2 * time.Minute,
	}, r)
}

func TestReportNamesTheFieldThatIsWrong(t *testing.T) {
	const sound = `{"v":1,"holder":"a.1","sent":"0s","counts":[{"id":"a.1/1","keys":["k"],"points":[{"count":1,"age":"1s"}]}],"given_up":[{"id":"a.1/2","keys":["k"]}]}`
	_, err := decodeReport([]byte(sound))
	require.NoError(t, err)
	for _, c := range [][3]string{
		{`"count":1`, `"count":-1`, "field counts[0].points[0].count"},
		{`"age":"1s"`, `"age":"1"`, "field counts[0].points[0].age"},
		{`,"age":"1s"`, ``, "field counts[0].points[0].age: it is missing"},
		{`"points"`, `"returned":0.5,"points"`, "field counts[0].returned"},
		{`"id":"a.1/2",`, ``, "field given_up[0].id: it is missing"},
		{`"a.1",`, `"a",`, "field holder"},
		{`"sent"`, `"goodbye":1,"sent"`, "field goodbye: 1 is neither true nor false"},
	} {
		_, err := decodeReport([]byte(strings.Replace(sound, c[0], c[1], 1)))
		require.ErrorContains(t, err, c[2])
		require.ErrorIs(t, err, lease.ErrBadRequest)
	}
	many := `{"v":1,"holder":"a.1","sent":"0s","counts":[` + strings.Repeat("{},", MaxCounts) + `{}]}`
	_, err = decodeReport([]byte(many))
	require.ErrorContains(t, err, "field counts[0].id") // the first fault is told
	_, err = decodeReply([]byte(`{"v":1,"epoch":"1.1","ended":[` + strings.Repeat(`"a.1/1",`, MaxCounts) + `"a.1/1"]}`))
	require.ErrorContains(t, err, "field ended: it has more than 4096 entries")
}

func TestWriterRefusesWhatTheWireCannotCarry(t *testing.T) {
	good := request(1, "k")
	for says, spoil := range map[string]func(*lease.Request){
		"field tokens: -1":   func(r *lease.Request) { r.Want.Tokens = -1 },
		"field slots":        func(r *lease.Request) { r.Need.Slots = maxNumber + 1 },
		"field sent":         func(r *lease.Request) { r.Sent = -1 },
		"field patience":     func(r *lease.Request) { r.Patience = -time.Second },
		"field keys: 0 keys": func(r *lease.Request) { r.Keys = nil },
		"field keys: 9 keys": func(r *lease.Request) { r.Keys = make([]lease.Key, 9) },
		"has no name":        func(r *lease.Request) { r.ID.Holder.Name = "" },
		"is not UTF-8":       func(r *lease.Request) { r.ID.Holder.Name = "\xff" },
	} {
		r := good
		spoil(&r)
		_, err := encodeRequest(r)
		require.ErrorContains(t, err, says)
		require.ErrorIs(t, err, lease.ErrBadRequest)
	}
	_, err := encodeAnswer(lease.Answer{ID: good.ID})
	require.ErrorContains(t, err, "outcome")
	_, err = encodeAnswer(lease.Answer{ID: good.ID, Outcome: lease.Refused})
	require.ErrorContains(t, err, "refusal.reason")
}

func TestReportIsDividedAmongMessages(t *testing.T) {
	r := lease.Report{Holder: holder, Sent: time.Second, Heartbeat: true}
	for i := range uint64(5000) {
		id := lease.ID{Holder: holder, Seq: i}
		r.Counts = append(r.Counts, lease.Count{ID: id, Keys: []lease.Key{"acme/prod"}, Returned: int64(i)})
		r.GivenUp = append(r.GivenUp, lease.GivenUp{ID: id, Keys: []lease.Key{"acme/prod"}})
	}
	messages, err := encodeReport(r)
	require.NoError(t, err)
	require.Less(t, len(messages), 12, "the messages are not filled")
	require.Equal(t, r, joined(t, messages))

	// One lease larger than a message cannot be told.
	for range 5000 {
		r.Counts[7].Points = append(r.Counts[7].Points, lease.Point{Count: 1, Age: time.Second})
	}
	_, err = encodeReport(r)
	require.ErrorContains(t, err, "does not fit")
	require.ErrorIs(t, err, lease.ErrBadRequest)
}

func TestErrorsKeepTheirCodesAndWords(t *testing.T) {
	for _, sentinel := range []*lease.Error{lease.ErrBadKey, lease.ErrStopped, lease.ErrLineFull, lease.ErrNoCoordinator, lease.ErrInternal} {
		for _, err := range []error{sentinel, fmt.Errorf("%w: because", sentinel), fmt.Errorf("turning: %w", sentinel)} {
			_, got := decodeAnswer(encodeError(err))
			require.ErrorIs(t, got, sentinel)
			require.Equal(t, err.Error(), got.Error())
			require.Equal(t, misunderstood(got), got, "it is an answer, not a misunderstanding")
		}
	}
	_, got := decodeReply(encodeError(errors.New("disk full")))
	require.ErrorIs(t, got, lease.ErrInternal)
	require.ErrorContains(t, got, "disk full")
}

func TestUnknownCodesAreInternalAndKeepTheirWords(t *testing.T) {
	_, err := decodeAnswer([]byte(`{"v":7,"error":{"code":"asleep","message":"by another","more":1}}`))
	require.ErrorIs(t, err, lease.ErrInternal, "an error reply has its form in every format")
	require.ErrorContains(t, err, `"asleep"`)
	require.ErrorContains(t, err, "by another")

	a, err := decodeAnswer([]byte(`{"v":1,"id":"a.1/1","outcome":"refused","refusal":{"reason":"asleep","message":"come back"},"epoch":"1.1"}`))
	require.NoError(t, err)
	require.ErrorIs(t, a.Refusal.Reason, lease.ErrInternal)
	require.ErrorContains(t, a.Refusal.Reason, "come back")
}

func TestRefusalReasonsSurviveTheWire(t *testing.T) {
	for _, reason := range []error{lease.ErrLimit, lease.ErrNever, fmt.Errorf("%w: 7 of 5", lease.ErrNever)} {
		body, err := encodeAnswer(lease.Answer{ID: request(1).ID, Outcome: lease.Refused, Refusal: lease.Refusal{Reason: reason}})
		require.NoError(t, err)
		a, err := decodeAnswer(body)
		require.NoError(t, err)
		require.Equal(t, reason.Error(), a.Refusal.Reason.Error())
		require.Equal(t, lease.Code(reason), lease.Code(a.Refusal.Reason))
	}
}

func TestAnswerWithoutWhatItsOutcomeNeedsIsRefused(t *testing.T) {
	for body, says := range map[string]string{
		`{"v":1,"id":"a.1/1","outcome":"granted","token_ttl":"1s","slot_ttl":"1s","terms":{},"epoch":"1.1"}`: "field granted: it is missing",
		`{"v":1,"id":"a.1/1","outcome":"granted","granted":{},"slot_ttl":"1s","terms":{},"epoch":"1.1"}`:     "field token_ttl: it is missing",
		`{"v":1,"id":"a.1/1","outcome":"refused","epoch":"1.1"}`:                                             "field refusal: it is missing",
		`{"v":1,"id":"a.1/1","outcome":"refused","refusal":{},"epoch":"1.1"}`:                                "field refusal.reason: it is missing",
		`{"v":1,"id":"a.1/1","outcome":"maybe","epoch":"1.1"}`:                                               "field outcome",
		`{"v":1,"id":"a.1/1","outcome":"ended"}`:                                                             "field epoch: it is missing",
		`{"v":1,"id":"a.1/1","outcome":"ended","epoch":"1"}`:                                                 "field epoch",
		`{"v":1,"error":"no"}`: "field error",
		`{"v":1,"error":{}}`:   "field error.code: it is missing",
	} {
		_, err := decodeAnswer([]byte(body))
		require.ErrorContains(t, err, says)
		require.ErrorIs(t, misunderstood(err), lease.ErrInternal, "it is the coordinator's fault")
	}
	_, err := decodeAnswer([]byte(`{"v":2,"id":"a.1/1"}`))
	require.ErrorIs(t, misunderstood(err), lease.ErrFormat)
}

// FuzzWire reads any bytes as each message. Whatever is read is written and
// read again as the same.
func FuzzWire(f *testing.F) {
	f.Add([]byte(sound))
	f.Add([]byte(`{"v":1,"error":{"code":"format","message":"\u0000\ud83d\ude00"}}`))
	for seed := range uint64(8) {
		d := draw{rand.New(rand.NewPCG(seed, 2))}
		for _, body := range [][]byte{first(encodeRequest(d.request())), first(encodeAnswer(d.answer())), first(encodeReply(d.reply()))} {
			f.Add(body)
		}
		if messages, err := encodeReport(d.report()); err == nil {
			f.Add(messages[0])
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		again(t, body, decodeRequest, encodeRequest)
		again(t, body, decodeAnswer, encodeAnswer)
		again(t, body, decodeReply, encodeReply)
		again(t, body, decodeRecall, encodeRecall)
		if r, err := decodeReport(body); err == nil {
			messages, err := encodeReport(r)
			require.NoError(t, err)
			require.Equal(t, normal(r), normal(joined(t, messages)))
		}
		_, _ = decodeQuestion(body)
	})
}

func first(body []byte, _ error) []byte { return body }

func again[T any](t *testing.T, body []byte, decode func([]byte) (T, error), encode func(T) ([]byte, error)) {
	t.Helper()
	m, err := decode(body)
	if err != nil {
		return
	}
	out, err := encode(m)
	if err != nil && strings.Contains(err.Error(), "bytes, at most") {
		return // escapes can make it longer
	}
	require.NoError(t, err, "%q", body)
	back, err := decode(out)
	require.NoError(t, err, "%q", out)
	require.Equal(t, fmt.Sprintf("%+v", m), fmt.Sprintf("%+v", back), "%q", out)
}

// normal makes empty lists of points nil, as the writer leaves them out.
func normal(r lease.Report) lease.Report {
	for i := range r.Counts {
		if len(r.Counts[i].Points) == 0 {
			r.Counts[i].Points = nil
		}
	}
	return r
}
