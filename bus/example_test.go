package bus_test

import (
	"context"
	"fmt"
	"time"

	"ration/bus"
	"ration/lease"
)

// generous is a lessor that grants everything, as a coordinator would not.
type generous struct{}

func (generous) Acquire(_ context.Context, r lease.Request) (lease.Answer, error) {
	return lease.Answer{ID: r.ID, Outcome: lease.Granted, Granted: r.Want, TokenTTL: 5 * time.Second}, nil
}

func (generous) Report(context.Context, lease.Report) (lease.Reply, error) { return lease.Reply{}, nil }

func (generous) Recalls(ctx context.Context, _ lease.Holder, _ func(lease.Recall)) error {
	<-ctx.Done()
	return nil
}

// A coordinator serves on an embedded server; a holder asks it.
func Example() {
	server, err := bus.Embed("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	inside, err := server.Connect(bus.ConnectConfig{Name: "coordinator"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer inside.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	ready, served := make(chan struct{}), make(chan error)
	go func() {
		served <- bus.Serve(ctx, inside, bus.ServeConfig{Lessor: generous{}, Ready: func() { close(ready) }})
	}()
	<-ready

	nc, err := bus.Connect(server.URL(), bus.ConnectConfig{Name: "holder", Wait: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()
	lessor := bus.NewClient(nc, bus.ClientConfig{})
	answer, err := lessor.Acquire(ctx, lease.Request{
		ID:   lease.ID{Holder: lease.Holder{Name: "shell-1", Incarnation: 0x7f3a}, Seq: 1},
		Keys: []lease.Key{"acme/prod"},
		Want: lease.Amount{Tokens: 10},
		Need: lease.Amount{Tokens: 1},
	})
	fmt.Println(answer.ID, answer.Granted.Tokens, err)

	cancel()
	fmt.Println(<-served)
	_, err = lessor.Status(context.Background(), "acme")
	fmt.Println(err)
	// Output:
	// shell-1.7f3a/1 10 <nil>
	// <nil>
	// lease: no coordinator answers: nobody serves ration.v1.default.admin.status
}

func ExampleToken() {
	for _, tenant := range []string{"acme", "acme.com", "_acme"} {
		token := bus.Token(tenant)
		fmt.Println(tenant, token, bus.Partition(token, 8))
	}
	// Output:
	// acme acme 7
	// acme.com _YWNtZS5jb20 4
	// _acme _X2FjbWU 2
}
