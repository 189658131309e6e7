package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestEndOfServingLeavesNobodyWaiting: what has arrived is answered, who
// stands in line is told, and who comes next hears that nobody serves.
func TestEndOfServingLeavesNobodyWaiting(t *testing.T) {
	e := embed(t)
	arrived := make(chan struct{}, 2)
	var inside atomic.Int64
	f := granting()
	f.acquire = func(ctx context.Context, r lease.Request) (lease.Answer, error) {
		inside.Add(1)
		defer inside.Add(-1)
		arrived <- struct{}{}
		if r.ID.Seq == 1 {
			<-ctx.Done()
			time.Sleep(50 * time.Millisecond) // a lessor slow to leave is waited for
			return lease.Answer{}, fmt.Errorf("in the line: %w", ctx.Err())
		}
		return grantOf(r), nil
	}
	stop := serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: f})
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	waiting := make(chan error)
	go func() {
		_, err := c.Acquire(context.Background(), request(1, "acme"))
		waiting <- err
	}()
	<-arrived
	stop()
	require.Zero(t, inside.Load(), "Serve returned before what it started had")
	require.ErrorIs(t, <-waiting, lease.ErrStopped)
	_, err := c.Acquire(bounded(t), request(2, "acme"))
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
}

// TestWhatArrivedIsAnsweredWhileServingEnds: of many requests sent around the
// end, each is answered, told that it stopped, or told that nobody serves.
func TestWhatArrivedIsAnsweredWhileServingEnds(t *testing.T) {
	e := embed(t)
	stop := serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: granting()})
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	const n = 400
	results := make(chan error, n)
	for i := range uint64(n) {
		if i == n/2 {
			go stop()
		}
		go func() {
			_, err := c.Acquire(bounded(t), request(i, "acme"))
			results <- err
		}()
	}
	for range n {
		if err := <-results; err != nil && !errors.Is(err, lease.ErrNoCoordinator) && !errors.Is(err, lease.ErrStopped) {
			require.NoError(t, err)
		}
	}
	stop()
}

func TestServeEndsWithItsConnection(t *testing.T) {
	e := embed(t)
	nc := dialed(t, e.URL(), ConnectConfig{})
	done := make(chan error)
	go func() {
		done <- Serve(context.Background(), nc, ServeConfig{Lessor: granting(), Ready: func() { go nc.Close() }})
	}()
	require.ErrorIs(t, <-done, lease.ErrNoCoordinator)
	require.Error(t, Serve(context.Background(), nc, ServeConfig{Lessor: granting()}))
}

func TestServeEndsWhenRecallsFail(t *testing.T) {
	e := embed(t)
	err := Serve(bounded(t), dialed(t, e.URL(), ConnectConfig{}), ServeConfig{
		Lessor:  granting(),
		Recalls: func(context.Context, func(lease.Recall)) error { return errors.New("deaf") },
	})
	require.ErrorContains(t, err, "deaf")
}

// TestSubjectAndBodyAgree: NATS grants rights on subjects, so a body must not
// reach past its own.
func TestSubjectAndBodyAgree(t *testing.T) {
	e := embed(t)
	f := granting()
	reached := errors.New("it reached the lessor")
	f.acquire = func(context.Context, lease.Request) (lease.Answer, error) { return lease.Answer{}, reached }
	f.report = func(context.Context, lease.Report) (lease.Reply, error) { return lease.Reply{}, reached }
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: f, Partitions: 8, Partition: 7})
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: f, Partitions: 8, Partition: 6})
	hand := dialed(t, e.URL(), ConnectConfig{})
	body := func(keys string) string { return strings.Replace(sound, `["k"]`, keys, 1) }
	report := `{"v":1,"holder":"a.1","sent":"0s","given_up":[{"id":"a.1/1","keys":["acme"]}],"counts":[{"id":"a.1/1","keys":["x"]}]}`
	for _, c := range [][4]string{
		{"7.acquire.acme", body(`["other/acme"]`), "bad_request", `of tenant \"other\"`},
		{"7.acquire.acme", body(`["acme","acmes"]`), "bad_request", "keys of two tenants"},
		{"6.acquire.acme", body(`["acme"]`), "wrong_partition", "belongs to partition 7 of 8; the subject says 6"},
		{"7.acquire._YWNtZQ", body(`["acme"]`), "bad_request", `whose token is \"acme\"`},
		{"7.report.acme", report, "bad_request", "keys of two tenants"},
		{"6.report.acme", `{"v":1,"holder":"a.1","sent":"0s"}`, "wrong_partition", "belongs to partition 7"},
		{"7.renew.acme", body(`["acme"]`), "bad_request", `no verb \"renew\"`},
		{"7.acquire.acme", `acquire!`, "bad_request", "not JSON"},
		{"7.acquire.acme", ``, "bad_request", "not JSON"},
		{"7.acquire.acme", body(`["acme//x"]`), "bad_key", "segment 2"},
		{"7.acquire.acme", `{"v":3}`, "format", "format 3"},
	} {
		m, err := hand.RequestWithContext(bounded(t), "ration.v1.default.p."+c[0], []byte(c[1]))
		require.NoError(t, err)
		require.Contains(t, string(m.Data), `"code":"`+c[2]+`"`)
		require.Contains(t, string(m.Data), c[3])
	}
}

// TestPatienceWithoutEndIsStillPatience: a sum past the largest duration would
// end the request at once.
func TestPatienceWithoutEndIsStillPatience(t *testing.T) {
	e := embed(t)
	f := granting()
	f.acquire = func(ctx context.Context, r lease.Request) (lease.Answer, error) {
		if end, ok := ctx.Deadline(); !ok || time.Until(end) < time.Hour {
			return lease.Answer{}, fmt.Errorf("it ends at %v", end)
		}
		return grantOf(r), nil
	}
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: f})
	r := request(1, "acme")
	r.Patience = math.MaxInt64
	_, err := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{}).Acquire(bounded(t), r)
	require.NoError(t, err)
}

func TestRequestNobodyWaitsForIsNotGranted(t *testing.T) {
	e := embed(t)
	f := granting()
	var asked atomic.Int64
	f.acquire = func(_ context.Context, r lease.Request) (lease.Answer, error) {
		asked.Add(1)
		return grantOf(r), nil
	}
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: f})
	hand := dialed(t, e.URL(), ConnectConfig{})
	subject := "ration.v1.default.p.0.acquire.k"
	require.NoError(t, hand.Publish(subject, []byte(sound)))
	_, err := hand.RequestWithContext(bounded(t), subject, []byte(sound)) // taken up after it
	require.NoError(t, err)
	require.Equal(t, int64(1), asked.Load())
}

func TestCoordinatorIsFoundAndTellsItsStatus(t *testing.T) {
	e := embed(t)
	failure := errors.New("no such key")
	stop := serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{
		Lessor: granting(), Cell: "prod", Name: "blue", Version: "1.2.3", Partitions: 4, Partition: 3,
		Status: func(_ context.Context, key lease.Key) (any, error) {
			switch key {
			case "":
				return []byte(`{"all":true}`), nil
			case "bad":
				return func() {}, nil
			case "missing":
				return nil, fmt.Errorf("%w: %w", lease.ErrBadRequest, failure)
			}
			return map[string]string{"key": string(key)}, nil
		},
	})
	nc := dialed(t, e.URL(), ConnectConfig{})
	c := NewClient(nc, ClientConfig{Cell: "prod"})
	refused, err := nc.RequestWithContext(bounded(t), "ration.v1.prod.p.3.acquire.k", []byte(sound))
	require.NoError(t, err)
	require.Contains(t, string(refused.Data), "wrong_partition", "k is of another one")

	all, err := c.Status(bounded(t), "")
	require.NoError(t, err)
	require.JSONEq(t, `{"all":true}`, string(all))
	one, err := c.Status(bounded(t), "a \"b\"")
	require.NoError(t, err)
	require.JSONEq(t, `{"key":"a \"b\""}`, string(one))
	_, err = c.Status(bounded(t), "missing")
	require.ErrorIs(t, err, lease.ErrBadRequest)
	require.ErrorContains(t, err, "no such key")
	_, err = c.Status(bounded(t), "bad")
	require.ErrorIs(t, err, lease.ErrInternal)

	m, err := nc.RequestWithContext(bounded(t), "ration.v1.prod.admin.status", []byte(`{"key":"k"}`))
	require.NoError(t, err)
	require.Contains(t, string(m.Data), "field v: it is missing")
	require.Equal(t, "400", m.Header.Get("Nats-Service-Error-Code"))

	m, err = nc.RequestWithContext(bounded(t), "$SRV.INFO.ration", nil)
	require.NoError(t, err)
	var info struct {
		Version   string            `json:"version"`
		Metadata  map[string]string `json:"metadata"`
		Endpoints []struct {
			Subject string `json:"subject"`
		} `json:"endpoints"`
	}
	require.NoError(t, json.Unmarshal(m.Data, &info))
	require.Equal(t, "1.2.3", info.Version)
	require.Equal(t, map[string]string{"cell": "prod", "name": "blue", "partitions": "4", "format": "1"}, info.Metadata)
	require.Equal(t, "ration.v1.prod.admin.status", info.Endpoints[0].Subject)

	m, err = nc.RequestWithContext(bounded(t), "$SRV.STATS.ration", nil)
	require.NoError(t, err)
	require.Contains(t, string(m.Data), `"acquires":1,"reports":0,"errors":1`)

	stop()
	_, err = nc.RequestWithContext(bounded(t), "$SRV.INFO.ration", nil)
	require.ErrorIs(t, err, nats.ErrNoResponders)
	_, err = c.Status(bounded(t), "")
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
}

func TestStatusIsNotServedWhereThereIsNone(t *testing.T) {
	e := embed(t)
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: granting()})
	_, err := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{}).Status(bounded(t), "")
	require.ErrorIs(t, err, lease.ErrNoCoordinator)
}

// TestFaultsOfTheLessorAreToldAsSuch: its error arrives with its code, and an
// answer that cannot be written is its fault.
func TestFaultsOfTheLessorAreToldAsSuch(t *testing.T) {
	e := embed(t)
	f := granting()
	f.acquire = func(_ context.Context, r lease.Request) (lease.Answer, error) {
		switch r.ID.Seq {
		case 1:
			return lease.Answer{}, errors.New("disk full")
		case 2:
			return lease.Answer{}, fmt.Errorf("%w: handing over", lease.ErrStopped)
		}
		return lease.Answer{ID: r.ID, Outcome: lease.Granted, TokenTTL: -1}, nil
	}
	f.report = func(context.Context, lease.Report) (lease.Reply, error) {
		return lease.Reply{}, lease.ErrStopped
	}
	serve(t, dialed(t, e.URL(), ConnectConfig{}), ServeConfig{Lessor: f})
	c := NewClient(dialed(t, e.URL(), ConnectConfig{}), ClientConfig{})
	for seq, want := range map[uint64]error{1: lease.ErrInternal, 2: lease.ErrStopped, 3: lease.ErrInternal} {
		_, err := c.Acquire(bounded(t), request(seq, "acme"))
		require.ErrorIs(t, err, want)
	}
	_, err := c.Report(bounded(t), lease.Report{Holder: holder, GivenUp: []lease.GivenUp{{ID: request(1).ID, Keys: []lease.Key{"k"}}}})
	require.ErrorIs(t, err, lease.ErrStopped)
}
