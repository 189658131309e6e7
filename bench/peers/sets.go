package main

import (
	"context"
	_ "embed"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed sets.lua
var setsText string

var setsScript = redis.NewScript(setsText)

// sets limits by one sorted set a window, in which each call is a member at its
// time: all windows are looked at first, then the call is entered in all.
type sets struct {
	client *redis.Client
	calls  atomic.Uint64
}

func (s *sets) take(ctx context.Context) error {
	n := s.calls.Add(1)
	now := time.Now().UnixMicro()
	wait, err := setsScript.Run(ctx, s.client, []string{"{k}:second", "{k}:minute"},
		now, strconv.FormatUint(n, 36), plenty, time.Second.Microseconds(), 50*plenty, time.Minute.Microseconds()).Int64()
	return refusedUnless(wait == 0, err)
}
