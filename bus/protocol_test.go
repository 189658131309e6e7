package bus

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/lease"
)

// block is one fenced block of the page: ```json <act> <subject>.
type block struct {
	act, subject, body string
	line               int
}

func page(t *testing.T) (text string, blocks []block) {
	t.Helper()
	raw, err := os.ReadFile("../docs/protocol.md")
	require.NoError(t, err)
	text = string(raw)
	for _, m := range regexp.MustCompile("(?ms)^```json (\\w+) ?(\\S*)\n(.*?)^```$").FindAllStringSubmatchIndex(text, -1) {
		blocks = append(blocks, block{
			act: text[m[2]:m[3]], subject: text[m[4]:m[5]], body: text[m[6]:m[7]],
			line: strings.Count(text[:m[0]], "\n") + 1,
		})
	}
	require.Greater(t, len(blocks), 15, "the page has lost its examples")
	require.Equal(t, len(blocks), strings.Count(text, "```json"), "a JSON block has no act")
	return text, blocks
}

// scripted answers as the page tells.
func scripted() *fake {
	epoch := lease.Epoch{Number: 3, Mark: 0x9f21}
	id := func(seq uint64) lease.ID { return lease.ID{Holder: holder, Seq: seq} }
	answers := map[uint64]lease.Answer{
		10: {
			Outcome: lease.Granted, Granted: lease.Amount{Tokens: 1},
			TokenTTL: 5 * time.Second, SlotTTL: 10 * time.Second, Terms: lease.Terms{Window: time.Second},
		},
		11: {Outcome: lease.Waiting},
		1: {
			Outcome: lease.Granted, Granted: lease.Amount{Tokens: 10, Slots: 1},
			TokenTTL: 5 * time.Second, SlotTTL: 10 * time.Second, Waited: 250 * time.Millisecond,
			Terms: lease.Terms{Window: time.Second, Concurrent: true},
		},
		2: {Outcome: lease.Refused, Refusal: lease.Refusal{
			Reason: lease.ErrLimit, Key: "acme/prod", Rule: "10/1s", Wait: 380 * time.Millisecond,
		}},
		3: {Outcome: lease.Waiting},
		4: {Outcome: lease.Ended},
		6: {
			Outcome: lease.Granted, Granted: lease.Amount{Tokens: 4},
			TokenTTL: 800_060 * time.Microsecond, SlotTTL: 10 * time.Second,
			Terms: lease.Terms{Window: time.Second, Spacing: 100_020 * time.Microsecond},
		},
		7: {
			Outcome: lease.Granted, Granted: lease.Amount{Tokens: 2, Units: lease.Units{{Unit: "tokens", N: 2400}}},
			TokenTTL: 5 * time.Second, SlotTTL: 10 * time.Second, Terms: lease.Terms{Window: time.Minute},
		},
	}
	return &fake{
		acquire: func(_ context.Context, r lease.Request) (lease.Answer, error) {
			a := answers[r.ID.Seq]
			if a.ID, a.Epoch = r.ID, epoch; a.Outcome == lease.Granted {
				a.Policy = 1
			}
			return a, nil
		},
		report: func(_ context.Context, r lease.Report) (lease.Reply, error) {
			switch {
			case r.Heartbeat:
				return lease.Reply{Epoch: epoch, Renewed: []lease.Renewal{{ID: id(1), SlotTTL: 10 * time.Second}}}, nil
			case r.Goodbye:
				return lease.Reply{Epoch: epoch, Ended: []lease.ID{id(0)}}, nil
			case len(r.GivenUp) == 0:
				return lease.Reply{Epoch: epoch}, nil
			}
			if len(r.GivenUp) == 0 {
				return lease.Reply{Epoch: epoch}, nil
			}
			return lease.Reply{Epoch: epoch, Acknowledged: []lease.ID{id(5)}}, nil
		},
	}
}

// TestProtocolPageIsTrue plays the page by hand, as `nats request` would.
func TestProtocolPageIsTrue(t *testing.T) {
	_, blocks := page(t)
	e := embed(t)
	recalls := make(chan lease.Recall, 1)
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{
		Lessor: scripted(),
		Status: func(_ context.Context, key lease.Key) (any, error) { return map[string]any{"key": key}, nil },
		Recalls: func(ctx context.Context, got func(lease.Recall)) error {
			for {
				select {
				case r := <-recalls:
					got(r)
				case <-ctx.Done():
					return nil
				}
			}
		},
	})
	hand, err := nats.Connect(e.URL())
	require.NoError(t, err)
	t.Cleanup(hand.Close)

	told := []lease.Recall{
		{Holder: holder, Key: "acme/prod/search", Slots: 2},
		{Holder: holder, Key: "acme/route/search", More: []lease.Key{"acme/user/7", "acme/\xff"}},
	}
	var reply []byte
	for _, b := range blocks {
		switch b.act {
		case "ask":
			m, err := hand.RequestWithContext(bounded(t), b.subject, []byte(b.body))
			require.NoError(t, err, "protocol.md:%d", b.line)
			reply = m.Data
			if strings.HasSuffix(b.subject, ".status") {
				require.JSONEq(t, `{"key":"acme/prod/search"}`, string(reply), "protocol.md:%d", b.line)
			}
		case "answer":
			require.JSONEq(t, b.body, string(reply), "protocol.md:%d", b.line)
		case "recall":
			sub, err := hand.SubscribeSync(b.subject)
			require.NoError(t, err)
			require.NoError(t, hand.Flush())
			recalls <- told[0]
			told = told[1:]
			m, err := sub.NextMsgWithContext(bounded(t))
			require.NoError(t, err)
			require.JSONEq(t, b.body, string(m.Data), "protocol.md:%d", b.line)
		default:
			t.Fatalf("protocol.md:%d: unknown act %q", b.line, b.act)
		}
	}
}

// TestProtocolPageIsWhatTheClientSpeaks reads each example into Go and writes
// it again: the same JSON.
func TestProtocolPageIsWhatTheClientSpeaks(t *testing.T) {
	_, blocks := page(t)
	same := func(b block, body []byte, err error) {
		require.NoError(t, err, "protocol.md:%d", b.line)
		require.JSONEq(t, b.body, string(body), "protocol.md:%d", b.line)
	}
	kinds := map[string]int{}
	for i, b := range blocks {
		verb, _ := verbAndToken(b.subject)
		if b.act == "answer" {
			verb, _ = verbAndToken(blocks[i-1].subject)
		}
		kind := b.act + " " + verb
		switch kind {
		case "ask acquire":
			one, all, err := newHeard().decodeRequests([]byte(b.body))
			switch {
			case err != nil:
				require.ErrorIs(t, err, lease.ErrFormat, "protocol.md:%d", b.line)
			case all != nil:
				body, err := encodeRequests(all)
				same(b, body, err)
			default:
				body, err := encodeRequest(one)
				same(b, body, err)
			}
		case "answer acquire":
			if strings.Contains(b.body, `"answers"`) {
				as, err := decodeAnswers([]byte(b.body))
				require.NoError(t, err, "protocol.md:%d", b.line)
				w := &writer{}
				w.answers(as)
				same(b, w.b, w.err)
				break
			}
			a, err := decodeAnswer([]byte(b.body))
			if strings.Contains(b.body, `"error"`) {
				require.Error(t, err)
				same(b, encodeError(err), nil)
				break
			}
			require.NoError(t, err)
			body, err := encodeAnswer(a)
			same(b, body, err)
		case "ask report":
			r, err := decodeReport([]byte(b.body))
			require.NoError(t, err)
			messages, err := encodeReport(r)
			require.Len(t, messages, 1)
			same(b, messages[0], err)
		case "answer report":
			r, err := decodeReply([]byte(b.body))
			require.NoError(t, err)
			body, err := encodeReply(r)
			same(b, body, err)
		case "recall recall":
			r, err := decodeRecall([]byte(b.body))
			require.NoError(t, err)
			require.Equal(t, b.subject, recallSubject(DefaultCell, r.Holder))
			body, err := encodeRecall(r)
			same(b, body, err)
		case "ask admin":
			key, err := decodeQuestion([]byte(b.body))
			same(b, encodeQuestion(key), err)
		default:
			t.Fatalf("protocol.md:%d: %s", b.line, kind)
		}
		kinds[kind]++
	}
	require.Len(t, kinds, 6)
}

func TestProtocolPageNamesTokensAndCodes(t *testing.T) {
	text, _ := page(t)
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| (\\d+) \\|$").FindAllStringSubmatch(text, -1)
	require.Greater(t, len(rows), 3)
	for _, row := range rows {
		require.Equal(t, row[2], Token(row[1]), "tenant %s", row[1])
		require.Equal(t, row[3], strconv.Itoa(Partition(row[2], 8)), "tenant %s", row[1])
	}
	_, errs, _ := strings.Cut(text, "\n## Errors\n")
	errs, _, _ = strings.Cut(errs, "\n## ")
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(errs, -1) {
		require.Equal(t, m[1], lease.FromCode(m[1]).Code(), "the page names a code that does not exist")
	}
	for _, sentinel := range []*lease.Error{
		lease.ErrLimit, lease.ErrNever, lease.ErrUnknownKey, lease.ErrNeedsSlot, lease.ErrLineFull, lease.ErrTooLate,
		lease.ErrTimedOut, lease.ErrNoCoordinator, lease.ErrStopped, lease.ErrBadKey, lease.ErrBadRequest,
		lease.ErrFormat, lease.ErrInternal,
	} {
		require.Contains(t, errs, "| `"+sentinel.Code()+"` |")
	}
}

func TestProtocolPageByHandWorks(t *testing.T) {
	text, _ := page(t)
	e := embed(t)
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{
		Lessor: granting(),
		Status: func(context.Context, lease.Key) (any, error) { return []byte(`{"keys":[]}`), nil },
	})
	hand := dialed(t, e.URL(), ConnectConfig{})
	commands := regexp.MustCompile(`(?m)^    nats request (\S+) '(.*)'$`).FindAllStringSubmatch(text, -1)
	require.Len(t, commands, 3)
	for _, c := range commands {
		m, err := hand.RequestWithContext(bounded(t), c[1], []byte(c[2]))
		require.NoError(t, err)
		var answer map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(m.Data, &answer), "%s", m.Data)
		require.NotContains(t, answer, "error", c[0])
	}
}
