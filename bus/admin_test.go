package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestCoordinatorOfManyPartitionsIsFoundOnce: as long as it serves any of them; and each
// tells its own status, where it is led.
func TestCoordinatorOfManyPartitionsIsFoundOnce(t *testing.T) {
	server := embed(t)
	nc := dialed(t, server.URL(), ConnectConfig{})
	admin := NewAdmin(nc, AdminConfig{
		Cell: "c", Partitions: 3, Name: "blue", Version: "1.2.3",
		Status: func(_ context.Context, key lease.Key) (any, error) {
			return map[string]string{"cell": string(key)}, nil
		},
	})
	var stops []func()
	for n := range 2 {
		stops = append(stops, serve(t, nc, ServeConfig{
			Lessor: granting(), Cell: "c", Partitions: 3, Partition: n, Admin: admin,
			Status: func(_ context.Context, key lease.Key) (any, error) {
				if key == "bad" {
					return nil, fmt.Errorf("%w: no such key", lease.ErrBadRequest)
				}
				return map[string]any{"partition": n, "key": key}, nil
			},
		}))
	}
	asker := dialed(t, server.URL(), ConnectConfig{})
	c := NewClient(asker, ClientConfig{Cell: "c", Partitions: 3})
	for n, tenant := range map[int]lease.Key{0: tenantOf(0, 3), 1: tenantOf(1, 3)} {
		_, err := c.Acquire(bounded(t), request(uint64(n), tenant))
		require.NoError(t, err)
		told, err := c.PartitionStatus(bounded(t), n, "k")
		require.NoError(t, err)
		require.JSONEq(t, fmt.Sprintf(`{"partition":%d,"key":"k"}`, n), string(told))
	}
	_, err := c.PartitionStatus(bounded(t), 1, "bad")
	require.ErrorIs(t, err, lease.ErrBadRequest)
	_, err = c.PartitionStatus(bounded(t), 2, "")
	require.ErrorIs(t, err, lease.ErrNoCoordinator)

	whole := func() {
		told, err := c.Status(bounded(t), "k")
		require.NoError(t, err)
		require.JSONEq(t, `{"cell":"k"}`, string(told))
	}
	whole()
	replies := make(chan *nats.Msg, 10)
	inbox := asker.NewInbox()
	_, err = asker.ChanSubscribe(inbox, replies)
	require.NoError(t, err)
	require.NoError(t, asker.PublishRequest("$SRV.STATS.ration", inbox, nil))
	var stats struct {
		Endpoints []struct {
			Data statistics `json:"data"`
		} `json:"endpoints"`
	}
	require.NoError(t, json.Unmarshal((<-replies).Data, &stats))
	require.Equal(t, int64(2), stats.Endpoints[0].Data.Acquires, "of both partitions")

	stops[0]()
	whole()
	stops[1]()
	require.Empty(t, replies, "one coordinator answers once")
	_, err = c.Status(bounded(t), "")
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
	stop := serve(t, nc, ServeConfig{Lessor: granting(), Cell: "c", Partitions: 3, Partition: 2, Admin: admin})
	whole()
	stop()
}

// tenantOf gives a tenant of a partition.
func tenantOf(n, of int) lease.Key {
	for i := 0; ; i++ {
		if tenant := fmt.Sprintf("t%d", i); Partition(Token(tenant), of) == n {
			return lease.Key(tenant)
		}
	}
}

// TestStatusUnderWayHoldsNoHandoverUp: the last partition that is handed over ends what is
// being asked.
func TestStatusUnderWayHoldsNoHandoverUp(t *testing.T) {
	server := embed(t)
	nc := dialed(t, server.URL(), ConnectConfig{})
	asked := make(chan struct{})
	var ended atomic.Bool
	admin := NewAdmin(nc, AdminConfig{Cell: "c", Partitions: 1, Name: "x", Version: "1.2.3",
		Status: func(ctx context.Context, _ lease.Key) (any, error) {
			close(asked)
			<-ctx.Done()
			ended.Store(context.Cause(ctx) == context.Canceled)
			return nil, ctx.Err()
		}})
	stop := serve(t, nc, ServeConfig{Lessor: granting(), Cell: "c", Admin: admin})
	asker := dialed(t, server.URL(), ConnectConfig{})
	require.NoError(t, asker.Publish(statusSubject("c"), encodeQuestion("")))
	<-asked
	stop()
	require.True(t, ended.Load(), "its time had not run out")
}

// TestClientLearnsThatThereAreFewerPartitions: nobody leads the one that it takes its
// tenant for, and who leads the first one knows how many there are.
func TestClientLearnsThatThereAreFewerPartitions(t *testing.T) {
	server := embed(t)
	for n := range 2 {
		serve(t, dialed(t, server.URL(), ConnectConfig{}), ServeConfig{Lessor: granting(), Partitions: 2, Partition: n})
	}
	nc := dialed(t, server.URL(), ConnectConfig{})
	for i := range 20 {
		c := NewClient(nc, ClientConfig{Partitions: 64})
		tenant := lease.Key(fmt.Sprintf("t%d", i))
		_, err := c.Acquire(bounded(t), request(uint64(i), tenant))
		require.NoError(t, err, tenant)
	}
	// Where the first one knows no better nobody leads.
	other := embed(t)
	serve(t, dialed(t, other.URL(), ConnectConfig{}), ServeConfig{Lessor: granting(), Partitions: 2, Partition: 0})
	c := NewClient(dialed(t, other.URL(), ConnectConfig{}), ClientConfig{Partitions: 2})
	_, err := c.Acquire(bounded(t), request(1, tenantOf(1, 2)))
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
	_, err = c.Acquire(bounded(t), request(2, tenantOf(0, 2)))
	require.NoError(t, err)
}
