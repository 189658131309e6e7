package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Stat is what a command has cost so far.
type Stat struct {
	Calls int64
	Spent time.Duration // within the server
}

// Stats gives them by the name of the command. A script counts as evalsha or eval, and
// the commands that it calls count besides.
func (r *Redis) Stats(ctx context.Context) (map[string]Stat, error) {
	text, err := r.Client.Info(ctx, "commandstats").Result()
	if err != nil {
		return nil, err
	}
	stats := map[string]Stat{}
	for line := range strings.Lines(text) {
		name, fields, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":")
		if !ok {
			continue
		}
		var calls, micros int64
		for field := range strings.SplitSeq(fields, ",") {
			is, value, _ := strings.Cut(field, "=")
			switch is {
			case "calls":
				calls, err = strconv.ParseInt(value, 10, 64)
			case "usec":
				micros, err = strconv.ParseInt(value, 10, 64)
			}
			if err != nil {
				return nil, fmt.Errorf("bench: reading %q: %w", line, err)
			}
		}
		stats[name] = Stat{calls, time.Duration(micros) * time.Microsecond}
	}
	return stats, nil
}
