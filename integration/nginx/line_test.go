package nginx

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration"
	"ration/integration/harness"
	"ration/lease"
)

// lined is what became of many calls that came at once.
type lined struct {
	served, refused int
	came            time.Duration // until the last that was refused
	took            time.Duration // until the last of them was served
}

func (l lined) String() string {
	return fmt.Sprintf("%d served over %v, %d refused", l.served, l.took.Round(10*time.Millisecond), l.refused)
}

// atOnce makes so many calls at once. Each says whether it was served.
func atOnce(t *testing.T, n int, call func(i int) (served bool, err error)) lined {
	t.Helper()
	var (
		found lined
		mu    sync.Mutex
		all   sync.WaitGroup
	)
	ready := make(chan struct{})
	var began time.Time
	for i := range n {
		all.Go(func() {
			<-ready
			served, err := call(i)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Errorf("call %d: %v", i, err)
			case served:
				found.served++
				found.took = time.Since(began)
			default:
				found.refused++
				found.came = time.Since(began)
			}
		})
	}
	began = time.Now()
	close(ready)
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return found
}

// TestPaceWithALineIsBurst: 30 calls at once under `10/1s pace` with a line of 20, and at
// nginx under `limit_req rate=10r/s burst=20`: of both 21 are served over 2 s, and 9 are
// refused at once. The callers are those of one worker, and then of 30.
func TestPaceWithALineIsBurst(t *testing.T) {
	t.Parallel()
	const calls, line = 30, 20
	judge := func(found lined) {
		t.Helper()
		more := int(found.came / (100 * time.Millisecond)) // that came back while they came
		require.GreaterOrEqual(t, found.served, 1+line, found)
		require.LessOrEqual(t, found.served, 1+line+more, found)
		require.Equal(t, calls, found.served+found.refused)
		require.GreaterOrEqual(t, found.took, 1990*time.Millisecond)
	}
	s := start(t, slow)
	nginx := atOnce(t, calls, func(i int) (bool, error) {
		resp, err := http.Get(fmt.Sprintf("%s/line?id=%d", s.url, i))
		if err != nil {
			return false, err
		}
		return resp.StatusCode == http.StatusOK, drain(resp)
	})
	t.Log("nginx:", nginx)
	judge(nginx)

	p, err := lease.ParsePolicy("line", []byte(fmt.Sprintf("limits: [{key: \"{k}\", rules: [10/1s pace], line: %d}]", line)))
	require.NoError(t, err)
	url := coordinate(t, p)
	for key, workers := range map[string]int{"one": 1, "many": calls} {
		var limiters []*ration.Limiter
		for range workers {
			c, err := ration.Connect(url, ration.WithConnectWait(harness.Patience))
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close(context.Background()) })
			require.NoError(t, c.Contact(t.Context(), key))
			l, err := c.Limiter(key)
			require.NoError(t, err)
			limiters = append(limiters, l)
		}
		found := atOnce(t, calls, func(i int) (bool, error) {
			h, err := limiters[i%workers].Acquire(t.Context(), 1)
			if errors.Is(err, lease.ErrLineFull) {
				return false, nil
			}
			if err == nil {
				h.Finish()
			}
			return err == nil, err
		})
		t.Logf("%d workers: %v", workers, found)
		judge(found)
	}
}
