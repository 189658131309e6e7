package bus

import (
	"context"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"ration/lease"
)

// AdminConfig says how a coordinator is found. All but Status must be given.
type AdminConfig struct {
	Cell       string
	Partitions int
	Name       string
	Version    string
	// Status gives the state of a key, or of the whole cell for the empty key, as that of
	// ServeConfig does. With nil it is not served.
	Status func(ctx context.Context, key lease.Key) (any, error)
}

// Admin makes a coordinator visible to `nats micro ls` and tells the status of its cell
// for as long as it serves any partition. It is safe for concurrent use.
type Admin struct {
	nc  *nats.Conn
	cfg AdminConfig

	mu      sync.Mutex
	members map[*serving]struct{}
	service micro.Service
	clerk   *clerk
}

// NewAdmin gives what the partitions that are served on a connection have in common.
func NewAdmin(nc *nats.Conn, cfg AdminConfig) *Admin {
	return &Admin{nc: nc, cfg: cfg, members: map[*serving]struct{}{}}
}

// enter says that s serves. There is no queue group: each coordinator answers for itself.
func (a *Admin) enter(s *serving) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.members[s] = struct{}{}
	if a.service != nil {
		return nil
	}
	service, err := micro.AddService(a.nc, micro.Config{
		Name:        "ration",
		Version:     a.cfg.Version,
		Description: "fleet-wide rate limits by token lease",
		Metadata: map[string]string{
			"cell":       a.cfg.Cell,
			"name":       a.cfg.Name,
			"partitions": strconv.Itoa(a.cfg.Partitions),
			"format":     strconv.Itoa(Format),
		},
		QueueGroupDisabled: true,
		StatsHandler:       func(*micro.Endpoint) any { return a.statistics() },
	})
	if err != nil {
		return err
	}
	a.service = service
	if a.cfg.Status == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := newStatusClerk(a.nc.MaxPayload())
	c.cancel, a.clerk = cancel, c
	return service.AddEndpoint("status", micro.HandlerFunc(func(r micro.Request) { teller(a.cfg.Status).reply(ctx, c, r) }),
		micro.WithEndpointSubject(statusSubject(a.cfg.Cell)),
		micro.WithEndpointPendingLimits(64, 1<<20))
}

// leave says that s serves no more. With the last one it ends, and what was asked too.
func (a *Admin) leave(s *serving) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.members, s)
	if len(a.members) > 0 || a.service == nil {
		return
	}
	_ = a.service.Stop() // fails only where the connection has ended it
	a.clerk.close()
	a.service, a.clerk = nil, nil
}

// statistics adds up those of all partitions that are served.
func (a *Admin) statistics() (all statistics) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s := range a.members {
		st := s.statistics()
		all.Acquires += st.Acquires
		all.Reports += st.Reports
		all.Errors += st.Errors
		all.TurnedAway += st.TurnedAway
		all.Dropped += st.Dropped
		all.UnderWay += st.UnderWay
	}
	return all
}

// statistics is what `nats micro stats ration` shows of this coordinator.
type statistics struct {
	Acquires   int64 `json:"acquires"`
	Reports    int64 `json:"reports"`
	Errors     int64 `json:"errors"`
	TurnedAway int64 `json:"turned_away"`
	Dropped    int   `json:"dropped"`
	UnderWay   int   `json:"under_way"`
}

// announce lets the coordinator be found, and tells the status of the partition.
func (s *serving) announce(ctx context.Context) error {
	if s.cfg.Status != nil {
		s.clerk = newStatusClerk(s.nc.MaxPayload())
		subject := partitionStatusSubject(s.cfg.Cell, s.cfg.Partition)
		s.unwatch = append(s.unwatch, s.onForbidden(subject))
		sub, err := s.nc.Subscribe(subject, func(m *nats.Msg) {
			body, err := teller(s.cfg.Status).answer(ctx, s.clerk, m.Data)
			if err != nil {
				body = encodeError(err)
			}
			_ = m.Respond(body) // it asks again
		})
		if err != nil {
			return err
		}
		s.questions = sub
	}
	if s.cfg.Admin == nil {
		s.cfg.Admin = NewAdmin(s.nc, AdminConfig{
			Cell: s.cfg.Cell, Partitions: s.cfg.Partitions, Name: s.cfg.Name, Version: s.cfg.Version, Status: s.cfg.Status,
		})
	}
	if s.cfg.Admin.cfg.Status != nil { // who starts another coordinator asks there whether there is one
		s.unwatch = append(s.unwatch, s.onForbidden(statusSubject(s.cfg.Cell)))
	}
	return s.cfg.Admin.enter(s)
}

func (s *serving) withdraw() {
	if s.cfg.Admin != nil {
		s.cfg.Admin.leave(s)
	}
	if s.questions != nil {
		_ = s.questions.Unsubscribe() // fails only where the connection has ended it
	}
	// Its last question may be under way, on a goroutine of the connection.
	s.clerk.close()
	s.acts.close()
	s.applies.close()
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
