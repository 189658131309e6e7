package redisbackend

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"ration/lease"
)

//go:embed lua/*.lua
var sources embed.FS

var (
	lookScript     = script("look")
	campaignScript = script("campaign")
	renewScript    = script("renew")
	resignScript   = script("resign")
	loadScript     = script("load")
	applyScript    = script("apply")
	probeScript    = script("probe")
)

func script(name string) *redis.Script {
	text, err := sources.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return redis.NewScript(string(text))
}

// run runs a script, which it tells the server if that does not know it.
func (m *Mirror) run(ctx context.Context, s *redis.Script, keys []string, args []any) ([]any, error) {
	reply, err := s.Run(ctx, m.server.client, keys, args...).Slice()
	if err != nil {
		return nil, m.server.explain(err)
	}
	return reply, nil
}

// write runs a script that writes, and waits until the replicas have what it wrote. WAIT
// is of the connection, so both go together.
//
// A replica that came since they were counted may be the one that has it, in place of one
// that has not and may be promoted. So each write that waits asks afterwards how many there
// are; and one that waits for none, now and then, whether there are any. Where there are
// more than were waited for, it is said again.
func (m *Mirror) write(ctx context.Context, s *redis.Script, keys []string, args []any) ([]any, error) {
	needed := m.needed()
	asks := m.server.config.Replicas < 0 && (needed > 0 || m.due(&m.asked, countEvery))
	if needed == 0 && !asks {
		return m.run(ctx, s, keys, args)
	}
	node, err := m.node(ctx)
	if err != nil {
		return nil, m.server.explain(err)
	}
	all := func(eval func(redis.Pipeliner) *redis.Cmd) (done *redis.Cmd, had int64, info string, err error) {
		pipe := node.Pipeline()
		done = eval(pipe)
		wait, asked := redis.NewIntCmd(ctx, "wait", needed, max(1, m.server.config.Wait.Milliseconds()/2)), redis.NewStringCmd(ctx, "info", "replication")
		if needed > 0 {
			_ = pipe.Process(ctx, wait)
		}
		if asks {
			_ = pipe.Process(ctx, asked)
		}
		_, err = pipe.Exec(ctx)
		var refused redis.Error
		if errors.As(asked.Err(), &refused) && wait.Err() == nil { // its user may not ask
			err = nil
		}
		return done, wait.Val(), asked.Val(), cmp.Or(done.Err(), err)
	}
	done, had, info, err := all(func(p redis.Pipeliner) *redis.Cmd { return s.EvalSha(ctx, p, keys, args...) })
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		done, had, info, err = all(func(p redis.Pipeliner) *redis.Cmd { return s.Eval(ctx, p, keys, args...) })
	}
	if err != nil {
		return nil, m.server.explain(err)
	}
	if n, ok := connected(info); ok && n > needed {
		m.countReplicas(ctx)
		needed = max(n, m.needed())
	}
	if had < int64(needed) {
		return nil, fmt.Errorf("redisbackend: %d of %d replicas of Redis at %s have the turn; it is said again until all have, or set --redis-replicas",
			had, needed, m.server.name)
	}
	return done.Slice()
}

// words reads the first words of a reply, and gives the error that they stand for.
func words(reply []any, e lease.Epoch) (first, second string, err error) {
	if len(reply) == 0 {
		return "", "", errReply
	}
	first, _ = reply[0].(string)
	if len(reply) > 1 {
		second, _ = reply[1].(string)
	}
	switch first {
	case "fenced":
		number, err := parseEpoch(second)
		if err != nil {
			return first, second, err
		}
		other := lease.Seat{Epoch: lease.Epoch{Number: number, Mark: ^e.Mark}}
		return first, second, other.Fence(e)
	case "gap":
		return first, second, lease.ErrGap
	}
	return first, second, nil
}

var errReply = errors.New("redisbackend: a script gave what it does not give")
