package redisbackend

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// oldest is the first version whose scripts replicate what they do, so that they may ask
// for the time and write.
const oldest = 5

var (
	// ErrEvicts says that a server may drop records that matter.
	ErrEvicts = errors.New("redisbackend: the server may evict")
	// ErrOld says that a server is of a version whose scripts cannot do what is needed.
	ErrOld = errors.New("redisbackend: the server is too old")
)

// Check asks whether the server can be trusted with the mirrors of a cell. An error that
// wraps ErrEvicts or ErrOld says that it cannot; any other says what is in the way, and
// that may change.
func (s *Server) Check(ctx context.Context, cell string) error {
	var err error
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, s.trusted)
	case *redis.Client:
		err = s.trusted(ctx, c)
	}
	switch {
	case errors.Is(err, ErrEvicts), errors.Is(err, ErrOld):
		return err
	case err != nil:
		return s.explain(err)
	}
	return s.Mirror(cell, 0).allowed(ctx)
}

// trusted asks one node what it is.
func (s *Server) trusted(ctx context.Context, node *redis.Client) error {
	info, err := node.Info(ctx).Result()
	if err != nil {
		return err
	}
	version := field(info, "redis_version")
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err == nil && n < oldest {
		return fmt.Errorf("%w: Redis at %s is version %s; use %d.0 or later", ErrOld, s.name, version, oldest)
	}
	most, policy := field(info, "maxmemory"), field(info, "maxmemory_policy")
	if most != "0" && most != "" && policy != "noeviction" {
		return fmt.Errorf("%w: Redis at %s has a maxmemory of %s bytes and the policy %s, and may drop what was spent; set maxmemory-policy noeviction",
			ErrEvicts, s.name, most, policy)
	}
	return nil
}

// allowed tries, on a key that lives a second, all that a mirror does.
func (m *Mirror) allowed(ctx context.Context) error {
	reply, err := m.run(ctx, probeScript, []string{m.prefix + "?"}, nil)
	if err != nil {
		return err
	}
	refused, err := list(reply)
	if err != nil {
		return err
	}
	node, err := m.node(ctx)
	if err != nil {
		return m.server.explain(err)
	}
	for _, other := range []struct {
		name string
		err  error
	}{
		{"SCAN", node.Scan(ctx, 0, m.prefix+"*", 1).Err()},
		{"WAIT", node.Wait(ctx, 0, 0).Err()},
	} {
		if other.err != nil && strings.HasPrefix(other.err.Error(), "NOPERM") {
			refused = append(refused, other.name)
		}
	}
	if len(refused) > 0 {
		return fmt.Errorf("redisbackend: Redis at %s: its user may not call %s; allow it, %s", m.server.name, strings.Join(refused, ", "), permit)
	}
	return nil
}

// field finds a value in what INFO gives.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
