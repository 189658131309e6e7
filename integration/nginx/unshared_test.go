package nginx

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWorkersThatDoNotShareAreRefused: four workers that each keep the contract by
// themselves break it together, and nginx says so. So the tests can fail.
func TestWorkersThatDoNotShareAreRefused(t *testing.T) {
	t.Parallel()
	t.Run("burst", func(t *testing.T) {
		s := start(t, slow)
		found := s.judge("/burst", play(t, alone(t, s, "nginx/burst"), callers, s.url+"/burst", 80))
		t.Log(found)
		require.Positive(t, found.refused)
	})
	t.Run("even", func(t *testing.T) {
		s := start(t, slow)
		found := s.judge("/even", play(t, alone(t, s, "nginx/even"), callers, s.url+"/even", 40))
		t.Log(found)
		require.Positive(t, found.refused)
	})
	// Each worker has 4 calls under way. Those that nginx takes stay until it has
	// refused all others.
	t.Run("conn", func(t *testing.T) {
		const takes, all = 4, 4 * workers
		refused := make(chan struct{})
		s := start(t, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-refused:
				w.WriteHeader(http.StatusNoContent)
			case <-r.Context().Done():
			}
		})
		fleet := alone(t, s, "nginx/conn")
		var ended sync.WaitGroup
		ended.Go(func() {
			defer close(refused)
			if _, err := s.logged("/conn", all-takes); err != nil {
				t.Error(err)
			}
		})
		found := s.judge("/conn", play(t, fleet, takes, s.url+"/conn", all))
		ended.Wait()
		t.Log(found)
		require.Equal(t, all-takes, found.refused)
		require.Equal(t, all-takes, strings.Count(s.errors(), "limiting connections"))
	})
}
