package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/micro"

	"ration/lease"
)

// statusWait is how long a question for the status may take.
const statusWait = 2 * time.Second

// statistics is what `nats micro stats ration` shows of this coordinator.
type statistics struct {
	Acquires   int64 `json:"acquires"`
	Reports    int64 `json:"reports"`
	Errors     int64 `json:"errors"`
	TurnedAway int64 `json:"turned_away"`
	Dropped    int   `json:"dropped"`
	UnderWay   int   `json:"under_way"`
}

// announce makes the coordinator visible to `nats micro ls` and serves the
// status. There is no queue group: each coordinator answers for itself.
func (s *serving) announce(ctx context.Context) error {
	service, err := micro.AddService(s.nc, micro.Config{
		Name:        "ration",
		Version:     s.cfg.Version,
		Description: "fleet-wide rate limits by token lease",
		Metadata: map[string]string{
			"cell":       s.cfg.Cell,
			"name":       s.cfg.Name,
			"partitions": strconv.Itoa(s.cfg.Partitions),
			"format":     strconv.Itoa(Format),
		},
		QueueGroupDisabled: true,
		StatsHandler:       func(*micro.Endpoint) any { return s.statistics() },
	})
	if err != nil {
		return err
	}
	s.service = service
	if s.cfg.Status == nil {
		return nil
	}
	// Who starts another coordinator asks here whether there is one.
	s.unwatch = append(s.unwatch, s.onForbidden(statusSubject(s.cfg.Cell)))
	return service.AddEndpoint("status", micro.HandlerFunc(func(r micro.Request) { s.status(ctx, r) }),
		micro.WithEndpointSubject(statusSubject(s.cfg.Cell)),
		micro.WithEndpointPendingLimits(64, 1<<20))
}

func (s *serving) withdraw() {
	if s.service != nil {
		_ = s.service.Stop() // fails only where the connection has ended it
	}
	// Its last handler may be under way, on a goroutine of the connection.
	s.statusMu.Lock()
	defer s.statusMu.Unlock()
	s.withdrew = true
}

func (s *serving) statistics() statistics {
	st := statistics{
		Acquires:   s.count.acquires.Load(),
		Reports:    s.count.reports.Load(),
		Errors:     s.count.errors.Load(),
		TurnedAway: s.count.turnedAway.Load(),
		UnderWay:   s.asking.under(),
	}
	for _, sub := range s.subs {
		if n, err := sub.Dropped(); err == nil {
			st.Dropped += n
		}
	}
	return st
}

func (s *serving) status(ctx context.Context, r micro.Request) {
	body, err := s.state(ctx, r.Data())
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

func (s *serving) state(ctx context.Context, question []byte) ([]byte, error) {
	s.statusMu.Lock()
	defer s.statusMu.Unlock()
	if s.withdrew {
		return nil, fmt.Errorf("%w: the coordinator hands over; ask again", lease.ErrStopped)
	}
	key, err := decodeQuestion(question)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	state, err := s.cfg.Status(ctx, key)
	if err != nil {
		return nil, err
	}
	body, ok := state.([]byte)
	if !ok {
		if body, err = json.Marshal(state); err != nil {
			return nil, fmt.Errorf("%w: its status cannot be written: %v", lease.ErrInternal, err)
		}
	}
	if most := s.nc.MaxPayload(); int64(len(body)) > most {
		return nil, fmt.Errorf("%w: the status has %d bytes, the NATS server takes %d; ask for one key",
			lease.ErrBadRequest, len(body), most)
	}
	return body, nil
}
