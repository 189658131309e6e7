package failover

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"ration"
	"ration/integration/oracle"
)

// upstream takes a while for each call, and notes when it arrived, and when it was
// released.
type upstream struct {
	server *httptest.Server
	base   time.Time

	mu    sync.Mutex
	calls []arrival
}

type arrival struct{ sent, at, done int64 }

func newUpstream(t *testing.T) *upstream {
	u := &upstream{base: time.Now()}
	u.server = httptest.NewServer(u)
	u.server.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 256
	t.Cleanup(u.server.Close)
	return u
}

// now is a clock that does not step.
func (u *upstream) now() int64 { return u.base.Add(time.Since(u.base)).UnixNano() }

func (u *upstream) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	at := u.now()
	sent, err := strconv.ParseInt(r.Header.Get("Sent"), 10, 64)
	if err != nil {
		return
	}
	select {
	case <-time.After(hold):
	case <-r.Context().Done(): // one that worked on for who has left would need a guard as long
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls = append(u.calls, arrival{sent, at, u.now()})
}

// call makes the call of a handle.
func (u *upstream) call(h *ration.Handle) error {
	r, err := http.NewRequestWithContext(h.Context(), http.MethodGet, u.server.URL, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Sent", strconv.FormatInt(h.Sent().UnixNano(), 10))
	answer, err := u.server.Client().Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// arrivals gives the calls as they arrived, but for those that came more than the guard
// after they were released, and how many those are. A call is under way until its
// caller had the answer, which is a little longer than the upstream is at work; so it
// counts as over when that ended.
func (u *upstream) arrivals(guard time.Duration) (calls []oracle.Spend, late int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.calls {
		if time.Duration(c.at-c.sent) > guard {
			late++
			continue
		}
		calls = append(calls, oracle.Spend{Key: key, At: c.at, Cost: 1, Done: c.done})
	}
	oracle.Sort(calls)
	return calls, late
}
