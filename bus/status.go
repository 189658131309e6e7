package bus

import (
	"context"

	"github.com/nats-io/nats.go/micro"

	"ration/lease"
)

// teller gives the status of a key, or of all for the empty key.
type teller func(ctx context.Context, key lease.Key) (any, error)

// newStatusClerk gives a clerk that tells the status in answers of at most so many bytes.
func newStatusClerk(most int64) *clerk {
	return &clerk{tells: "the status", remedy: "ask for one key", most: most}
}

// answer answers a message by a clerk.
func (t teller) answer(ctx context.Context, c *clerk, question []byte) ([]byte, error) {
	key, err := decodeQuestion(question)
	if err != nil {
		return nil, err
	}
	return c.answer(ctx, func(ctx context.Context) (any, error) { return t(ctx, key) })
}

// reply answers a question that came by the service.
func (t teller) reply(ctx context.Context, c *clerk, r micro.Request) {
	body, err := t.answer(ctx, c, r.Data())
	if err != nil {
		code := "500"
		if lease.Code(err) != lease.ErrInternal.Code() {
			code = "400"
		}
		_ = r.Error(code, err.Error(), encodeError(err))
		return
	}
	_ = r.Respond(body)
}
