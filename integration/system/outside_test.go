package system

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/integration/harness"
)

// outside is a coordinator process and a way to ask it for its state.
type outside struct {
	*harness.Coordinator
	h      *harness.Test
	client *bus.Client
}

// document is what status says, as far as the tests look at it.
type document struct {
	Leases  int `json:"leases"`
	Waiting int `json:"waiting"`
	Held    struct {
		Tokens int64 `json:"tokens"`
		Slots  int64 `json:"slots"`
	} `json:"held"`
	Keys []struct {
		Windows []struct {
			Rule  string `json:"rule"`
			Free  int64  `json:"free"`
			Spent int64  `json:"spent"`
		} `json:"windows"`
	} `json:"keys"`
}

// spent is what the windows have as spent, all together.
func (d document) spent() (n int64) {
	for _, k := range d.Keys {
		for _, w := range k.Windows {
			n += w.Spent
		}
	}
	return n
}

// free is what a rule has free, -1 if it is not known.
func (d document) free(rule string) int64 {
	for _, k := range d.Keys {
		for _, w := range k.Windows {
			if w.Rule == rule {
				return w.Free
			}
		}
	}
	return -1
}

func realSite(t *testing.T, policy string) *outside {
	t.Helper()
	h := harness.New(t)
	r := &outside{h: h, Coordinator: h.Coordinator(harness.CoordinatorConfig{Policy: h.Policy(policy)})}
	nc, err := bus.Connect(r.NATS, bus.ConnectConfig{Wait: harness.Patience})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	r.client = bus.NewClient(nc, bus.ClientConfig{})
	return r
}

func (r *outside) status() (d document, err error) {
	body, err := r.client.Status(context.Background(), "")
	if err == nil {
		err = json.Unmarshal(body, &d)
	}
	return d, err
}

// until waits until the coordinator is as the test wants it.
func (r *outside) until(t *testing.T, what string, holds func(document) bool) {
	t.Helper()
	r.h.Until(what, func() error {
		d, err := r.status()
		if err != nil || holds(d) {
			return err
		}
		return fmt.Errorf("it says %+v", d)
	})
}
