package bus

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

func TestAcquireAndReportArriveAsTheyWereSent(t *testing.T) {
	e := embed(t)
	var asked lease.Request
	var told lease.Report
	f := granting()
	acquire, report := f.acquire, f.report
	f.acquire = func(ctx context.Context, r lease.Request) (lease.Answer, error) {
		asked = r
		return acquire(ctx, r)
	}
	f.report = func(ctx context.Context, r lease.Report) (lease.Reply, error) {
		told = r
		return report(ctx, r)
	}
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: f, Cell: "prod"})
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{Cell: "prod"})

	r := request(7, "acme/prod", "acme/*/>\r\n \x00\xff")
	a, err := c.Acquire(bounded(t), r)
	require.NoError(t, err)
	require.Equal(t, r, asked)
	require.Equal(t, grantOf(r), a)

	rep := lease.Report{
		Holder: holder, Sent: time.Minute, Heartbeat: true,
		Counts:  []lease.Count{{ID: r.ID, Keys: r.Keys, Points: []lease.Point{{Count: 3, Age: 7}}, Returned: 1, Cut: 1}},
		GivenUp: []lease.GivenUp{{ID: lease.ID{Holder: holder, Seq: 8}, Keys: r.Keys}},
	}
	reply, err := c.Report(bounded(t), rep)
	require.NoError(t, err)
	require.Equal(t, rep, told)
	require.Equal(t, []lease.Renewal{{ID: r.ID, SlotTTL: 10 * time.Second}}, reply.Renewed)
	require.Equal(t, []lease.ID{{Holder: holder, Seq: 8}}, reply.Acknowledged)
	require.Equal(t, a.Epoch, reply.Epoch)
}

func TestLargeReportsAreSaidInParts(t *testing.T) {
	e := embed(t)
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: granting()})
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	r := lease.Report{Holder: holder, Heartbeat: true}
	for i := range uint64(6000) {
		r.Counts = append(r.Counts, lease.Count{ID: lease.ID{Holder: holder, Seq: i}, Keys: []lease.Key{"acme"}})
	}
	reply, err := c.Report(bounded(t), r)
	require.NoError(t, err)
	require.Len(t, reply.Renewed, len(r.Counts))
	for i, n := range reply.Renewed {
		require.Equal(t, r.Counts[i].ID, n.ID)
	}
}

// TestEveryTenantFindsItsPartition: awkward tenants over eight partitions.
func TestEveryTenantFindsItsPartition(t *testing.T) {
	e := embed(t)
	for n := range 8 {
		serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: granting(), Partitions: 8, Partition: n})
	}
	nc := dialed(t, e.URL(), ConnectConfig{})
	c := NewClient(nc, ClientConfig{Partitions: 8})
	for i, tenant := range awkward {
		_, err := c.Acquire(bounded(t), request(uint64(i), lease.Key(tenant)))
		require.NoError(t, err, "%.80q", tenant)
	}
	for i, tenant := range awkward { // one that takes the cell for undivided is told
		_, err := NewClient(nc, ClientConfig{}).Acquire(bounded(t), request(uint64(99+i), lease.Key(tenant)))
		require.NoError(t, err, "%.80q", tenant)
	}
}

func TestReportOfNothingIsNotSent(t *testing.T) {
	e := embed(t)
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	_, err := c.Report(bounded(t), lease.Report{Holder: holder, Heartbeat: true})
	require.NoError(t, err, "there is nobody who could have answered")
	_, err = c.Report(bounded(t), lease.Report{Holder: holder, Sent: math.MinInt64, GivenUp: []lease.GivenUp{{Keys: []lease.Key{"a"}}}})
	require.ErrorIs(t, err, lease.ErrBadRequest)
}

func TestRecallsReachTheirHolderOnly(t *testing.T) {
	e := embed(t)
	out := make(chan lease.Recall)
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{
		Lessor: granting(),
		Recalls: func(ctx context.Context, got func(lease.Recall)) error {
			for {
				select {
				case r := <-out:
					got(r)
				case <-ctx.Done():
					return nil
				}
			}
		},
	})
	nc := dialed(t, e.URL(), ConnectConfig{})
	c := NewClient(nc, ClientConfig{})
	ctx, cancel := context.WithCancel(context.Background())
	heard := make(chan lease.Recall, 16)
	ended := make(chan error)
	go func() { ended <- c.Recalls(ctx, holder, func(r lease.Recall) { heard <- r }) }()
	require.Eventually(t, func() bool { return nc.NumSubscriptions() == 1 }, 30*time.Second, time.Millisecond)
	require.NoError(t, nc.FlushWithContext(bounded(t)))

	require.NoError(t, nc.Publish(recallSubject(DefaultCell, holder), []byte("garbage")))
	for i, h := range []lease.Holder{{Name: "shell-1", Incarnation: 1}, {Name: "shell", Incarnation: 0x7f3a}, holder, {Name: ""}, holder} {
		out <- lease.Recall{Holder: h, Key: lease.Key(fmt.Sprintf("key %d", i)), Slots: int64(i)}
	}
	require.Equal(t, lease.Recall{Holder: holder, Key: "key 2", Slots: 2}, <-heard)
	require.Equal(t, lease.Recall{Holder: holder, Key: "key 4", Slots: 4}, <-heard)
	cancel()
	require.NoError(t, <-ended)
	require.Empty(t, heard)
	require.ErrorIs(t, c.Recalls(ctx, lease.Holder{}, nil), lease.ErrBadRequest)
}
