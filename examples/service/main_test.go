package main

import (
	"context"
	_ "embed"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ration"
)

//go:embed ration.yaml
var policy string

// With ration.Local a service's tests need no NATS and no coordinator.
func serve(t *testing.T, policy string, upstream http.HandlerFunc) (*httptest.Server, *ration.Client) {
	t.Helper()
	client, err := ration.Local(policy)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })
	limiter, err := client.Limiter("acme/search")
	require.NoError(t, err)
	u := httptest.NewServer(upstream)
	t.Cleanup(u.Close)
	s := httptest.NewServer(newSearch(limiter, u.URL))
	t.Cleanup(s.Close)
	return s, client
}

func TestNoMoreCallsAreUnderWayThanAllowed(t *testing.T) {
	var now, most, calls atomic.Int64
	s, _ := serve(t, policy, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		w.Write([]byte("found"))
	})
	var requests sync.WaitGroup
	for range 12 {
		requests.Go(func() {
			resp, err := http.Get(s.URL)
			if err == nil {
				resp.Body.Close()
			}
		})
	}
	requests.Wait()
	require.LessOrEqual(t, most.Load(), int64(4))
	require.Positive(t, calls.Load())
}

func TestARefusalIsPassedOn(t *testing.T) {
	s, _ := serve(t, "limits: [{key: acme/search, rules: [0/1s]}]", func(http.ResponseWriter, *http.Request) {
		t.Error("the upstream was called")
	})
	resp, err := http.Get(s.URL)
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Empty(t, resp.Header.Get("Retry-After"), "waiting does not help")
}

// A broken upstream costs its token and frees its slot: the next call comes
// through.
func TestABrokenCallFreesItsSlot(t *testing.T) {
	var calls atomic.Int64
	s, client := serve(t, "limits: [{key: acme/search, rules: [100/1d, 1 concurrent]}]", func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
	})
	for _, want := range []int{http.StatusBadGateway, http.StatusOK} {
		resp, err := http.Get(s.URL)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, want, resp.StatusCode)
	}
	require.Equal(t, int64(2), client.Stats().Spent)
}
