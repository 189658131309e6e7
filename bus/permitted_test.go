package bus

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"ration/lease"
)

// permissions is the configuration on the page for operators.
func permissions(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)\n```conf\n(.*?)```\n").FindAllSubmatch(raw, -1)
	require.Len(t, found, 1)
	return string(found[0][1])
}

// cast is those who play under a configuration.
type cast struct {
	t   *testing.T
	url string
	log *log
}

func (c *cast) connect(user string) *nats.Conn {
	c.t.Helper()
	nc, err := Connect(c.url, ConnectConfig{
		User: user, Password: "change this", InboxPrefix: "_INBOX_" + user, Wait: 20 * time.Second, Log: c.log.logger(),
	})
	require.NoError(c.t, err)
	c.t.Cleanup(nc.Close)
	return nc
}

// until waits for a condition, or for the end of ctx, which is then the error.
func until(ctx context.Context, holds func() bool) error {
	for !holds() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// play does all that coordinators, workers and operators do, until all of it has worked or
// ctx ends.
func (c *cast) play(ctx context.Context) error {
	ctx, over := context.WithCancel(ctx)
	all, ctx := errgroup.WithContext(ctx)
	first, second, workers, people := c.connect("coordinator"), c.connect("coordinator"), c.connect("acme"), c.connect("operator")
	client := NewClient(workers, ClientConfig{})
	lead := func(nc *nats.Conn) (ready chan struct{}) {
		ready = make(chan struct{})
		all.Go(func() error {
			return Serve(ctx, nc, ServeConfig{
				Lessor: granting(), Ready: func() { close(ready) },
				Status:     func(context.Context, lease.Key) (any, error) { return []byte(`{}`), nil },
				ResetClock: func(context.Context) (any, error) { return []byte(`{}`), nil },
				Act:        func(context.Context, lease.Act) (any, error) { return []byte(`{}`), nil },
				Apply:      func(context.Context, Policy) (any, error) { return []byte(`{}`), nil },
				Recalls: func(ctx context.Context, got func(lease.Recall)) error {
					for ctx.Err() == nil {
						got(lease.Recall{Holder: holder, Key: "acme", Slots: 1})
						time.Sleep(time.Millisecond)
					}
					return nil
				},
			})
		})
		return ready
	}
	recalled := make(chan struct{}, 1)
	all.Go(func() error {
		return client.Recalls(ctx, holder, func(lease.Recall) {
			select {
			case recalled <- struct{}{}:
			default:
			}
		})
	})
	all.Go(func() error {
		defer over()
		known := func() Known { return Known{Number: 1, Mirror: 1} }
		var ears [2]*Ears
		for i, nc := range []*nats.Conn{first, second} {
			var err error
			if ears[i], err = Listen(nc, EarsConfig{Name: "one", Known: known, Every: 5 * time.Millisecond}); err != nil {
				return err
			}
			defer ears[i].Close()
		}
		wait := func(done <-chan struct{}) error {
			select {
			case <-done:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		steps := []func() error{
			func() error { return wait(lead(first)) },
			func() error {
				return until(ctx, func() bool {
					h := ears[1].Hear(lease.Epoch{})
					return h.Connected && h.Served && len(h.Others) == 1
				})
			},
			func() error {
				_, err := NewClient(second, ClientConfig{}).Status(ctx, "") // whether somebody leads already
				return err
			},
			func() error { // of a partition that another coordinator leads
				_, err := NewClient(second, ClientConfig{}).PartitionStatus(ctx, 0, "")
				return err
			},
			func() error { _, err := client.Acquire(ctx, request(1, "acme/search")); return err },
			func() error {
				_, err := client.Report(ctx, lease.Report{Holder: holder, GivenUp: []lease.GivenUp{{ID: request(2).ID, Keys: []lease.Key{"acme"}}}})
				return err
			},
			func() error { // a policy whose file is another coordinator's
				_, err := NewClient(second, ClientConfig{}).Apply(ctx, 0, Policy{File: "ration.yaml", Text: "limits: []"})
				return err
			},
			func() error { return wait(recalled) },
			func() error {
				next := client.news(0)
				return errors.Join(wait(lead(second)), wait(next))
			},
			func() error { _, err := NewClient(people, ClientConfig{}).Status(ctx, ""); return err },
			func() error { _, err := NewClient(people, ClientConfig{}).ResetClock(ctx, 0); return err },
			func() error {
				_, err := NewClient(people, ClientConfig{}).Apply(ctx, 0, Policy{File: "ration.yaml", Text: "limits: []"})
				return err
			},
			func() error {
				for _, verb := range lease.Verbs {
					a := lease.Act{Verb: verb, Key: "acme"}
					if verb == lease.VerbCharge {
						a.ID, a.N = "a", 1
					}
					if _, err := NewClient(people, ClientConfig{}).Act(ctx, a); err != nil {
						return err
					}
				}
				return nil
			},
			func() error { _, err := people.RequestWithContext(ctx, "$SRV.INFO.ration", nil); return err },
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	return all.Wait()
}

const forbids = "NATS forbids it"

// TestThePermissionsOnThePageAreEnough: under them everybody can do all that there is to
// do, and NATS refuses nothing.
func TestThePermissionsOnThePageAreEnough(t *testing.T) {
	c := &cast{t, configured(t, permissions(t)), &log{}}
	require.NoError(t, c.play(bounded(t)))
	require.False(t, c.log.holds(forbids), "%s", &c.log.buf)
}

// TestEachPermissionOnThePageIsNeeded is B154: without any one of them something is refused, and
// said.
func TestEachPermissionOnThePageIsNeeded(t *testing.T) {
	conf := permissions(t)
	places := regexp.MustCompile(`"[\w.*$]+\.[*>\w]+"|allow_responses: \{.*\}`).FindAllStringIndex(conf, -1)
	require.Len(t, places, 8+8+1+2+3+3+1)
	for _, at := range places {
		subject := conf[at[0]:at[1]]
		without := `"elsewhere"`
		if strings.HasPrefix(subject, "allow_responses") {
			without = ""
		}
		c := &cast{t, configured(t, conf[:at[0]]+without+conf[at[1]:]), &log{}}
		ctx, stop := context.WithCancel(bounded(t))
		ended := make(chan error, 1)
		go func() { ended <- c.play(ctx) }()
		require.Eventually(t, func() bool { return c.log.holds(forbids) }, 30*time.Second, time.Millisecond, "without %s", subject)
		stop()
		<-ended
	}
}

// TestATenantIsConfinedByThePermissionsOnThePage: its user reaches no other tenant, hears
// no answers to others, and can be nobody's coordinator.
func TestATenantIsConfinedByThePermissionsOnThePage(t *testing.T) {
	c := &cast{t, configured(t, permissions(t)), &log{}}
	coordinator := c.connect("coordinator")
	serve(t, coordinator, ServeConfig{
		Lessor: granting(),
		Status: func(context.Context, lease.Key) (any, error) { return []byte(`{}`), nil },
	})
	acme := c.connect("acme")
	client := NewClient(acme, ClientConfig{})
	_, err := client.Acquire(bounded(t), request(1, "acme"))
	require.NoError(t, err)
	_, err = client.Acquire(bounded(t), request(2, "other"))
	require.ErrorIs(t, err, ErrPermission)
	_, err = client.Report(bounded(t), lease.Report{Holder: holder, GivenUp: []lease.GivenUp{{ID: request(2).ID, Keys: []lease.Key{"other"}}}})
	require.ErrorIs(t, err, ErrPermission)
	_, err = client.Status(bounded(t), "")
	require.ErrorIs(t, err, ErrPermission)
	err = Serve(bounded(t), c.connect("acme"), ServeConfig{Lessor: granting()})
	require.ErrorIs(t, err, ErrPermission)
	for _, subject := range []string{"_INBOX.>", "_INBOX_operator.>", "ration.v1.default.p.*.acquire.*", "ration.v1.default.hello.*", "ration.>"} {
		_, err := acme.Subscribe(subject, func(*nats.Msg) { t.Errorf("acme hears %s", subject) })
		require.NoError(t, err)
		require.Eventually(t, func() bool { return c.log.holds(`may not subscribe to \"` + permitted(subject) + `\"`) }, 30*time.Second, time.Millisecond)
	}
	for _, subject := range []string{"ration.v1.default.p.0.leads", "ration.v1.default.recall.x-1", "ration.v1.default.hello.0"} {
		require.NoError(t, acme.Publish(subject, nil))
		require.Eventually(t, func() bool { return c.log.holds(`may not publish to \"` + subject + `\"`) }, 30*time.Second, time.Millisecond)
	}
}
