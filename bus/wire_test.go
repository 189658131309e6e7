package bus

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// Every number comes back to the last digit, also those that no double holds.
func TestWireGivesBackWhatItTook(t *testing.T) {
	for seed := range uint64(400) {
		d := draw{rand.New(rand.NewPCG(seed, 1))}
		same(t, seed, d.request(), encodeRequest, decodeRequest)
		same(t, seed, d.answer(), encodeAnswer, decodeAnswer)
		same(t, seed, d.reply(), encodeReply, decodeReply)
		recall := lease.Recall{Holder: d.holder(), Key: d.key(), Slots: d.number()}
		if d.IntN(2) == 0 {
			recall.More = d.keys()
		}
		same(t, seed, recall, encodeRecall, decodeRecall)

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
	f.Add([]byte(`{"v":1,"sent":"1ns","id":"a.1/1","keys":["a"],"want":{"tokens":1},"need":{"slots":1,"units":{"a":1000000000001000}},"patience":"0s"}`))
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
			if !errors.Is(err, lease.ErrBadRequest) { // as above
				require.NoError(t, err)
				require.Equal(t, normal(r), normal(joined(t, messages)))
			}
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
	if errors.Is(err, lease.ErrBadRequest) {
		return // a coordinator refuses it: no rule could grant so much
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
