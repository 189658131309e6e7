package system

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/integration/oracle"
	"ration/lease"
	"ration/worker"
)

// TestTinyWindowsHoldInRealTime: ten workers under a window far shorter
// than timers are exact, and under one of a second, on the real clock.
func TestTinyWindowsHoldInRealTime(t *testing.T) {
	p, err := lease.ParsePolicy("policy", []byte("limits:\n- {key: tiny, rules: [1000/10ms]}\n- {key: second, rules: [50/1s]}\n"))
	require.NoError(t, err)
	c, err := coordinator.New(coordinator.DefaultConfig(p))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	leaders, ended := make(chan *coordinator.Leader, 1), make(chan error, 1)
	go func() {
		ended <- c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			leaders <- l
			<-ctx.Done()
			return nil
		})
	}()
	defer func() {
		stop()
		require.NoError(t, <-ended)
	}()
	leader := <-leaders

	for _, limit := range []struct{ key, rule string }{{"tiny", "1000/10ms"}, {"second", "50/1s"}} {
		var mu sync.Mutex
		var spends []oracle.Spend
		var callers sync.WaitGroup
		demand, enough := context.WithTimeout(ctx, 1500*time.Millisecond)
		for i := range 10 {
			config := worker.DefaultConfig()
			config.Name = fmt.Sprint("w", i)
			w, err := worker.New(leader, config)
			require.NoError(t, err)
			defer w.Close(context.Background())
			for range 4 {
				callers.Go(func() {
					var mine []oracle.Spend
					for {
						h, err := w.Limiter(lease.Key(limit.key)).Acquire(demand, 1)
						if err != nil {
							break
						}
						h.Finish()
						mine = append(mine, oracle.Spend{Key: limit.key, At: h.Sent().UnixNano(), Cost: 1})
					}
					mu.Lock()
					defer mu.Unlock()
					spends = append(spends, mine...)
				})
			}
		}
		callers.Wait()
		enough()
		rules := oracle.MustRules(limit.rule)
		require.Empty(t, oracle.Violations(spends, rules))
		most, _ := oracle.Worst(rules[0], spends)
		require.NotZero(t, most)
		t.Logf("%s: %d calls, at most %d in a window", limit.rule, len(spends), most)
	}
}
