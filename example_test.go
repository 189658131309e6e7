package ration_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	"ration"
)

func Example() {
	ctx := context.Background()
	client, err := ration.Connect("nats://127.0.0.1:4222")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx) // what is unspent goes back at once
	mail, err := client.Limiter("acme/mail")
	if err != nil {
		log.Fatal(err)
	}

	if mail.Allow() { // a token is at hand: nanoseconds, no network
		fmt.Println("now")
	}
	if err := mail.Wait(ctx); err != nil { // or wait for one
		log.Fatal(err)
	}
	fmt.Println("in its turn")
}

// One process alone, and tests: no NATS, no coordinator.
func ExampleLocal() {
	ctx := context.Background()
	client, err := ration.Local(`limits: [{key: demo, rules: [5/1d]}]`)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	demo, err := client.Limiter("demo")
	if err != nil {
		log.Fatal(err)
	}
	for range 5 {
		if err := demo.Wait(ctx); err != nil {
			log.Fatal(err)
		}
	}

	var refused *ration.Refused
	if err := demo.WaitN(ctx, 6); errors.As(err, &refused) {
		fmt.Println(refused.Rule, "of", refused.Key, "cannot give 6; never:", refused.Never)
	}
	// Output: 5/1d of demo cannot give 6; never: true
}

// A call that may not leave, and an upstream that caps how many run at once.
func ExampleLimiter_Acquire() {
	ctx := context.Background()
	client, err := ration.Local(`limits: [{key: demo, rules: [100/1d, 1 concurrent]}]`)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	demo, err := client.Limiter("demo")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(demo.Wait(ctx))

	handle, err := demo.Acquire(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	req, err := http.NewRequestWithContext(handle.Context(), http.MethodGet, "http://upstream.example/a b", nil)
	if err != nil {
		handle.Cancel() // it never left: the token and the slot serve the next caller
		fmt.Println("not sent")
		return
	}
	fmt.Println("would be sent to", req.URL.Host)
	handle.Finish() // the upstream has answered: the slot is free
	// Output:
	// ration: the key has a concurrency rule; use Acquire, which gives the slot back
	// would be sent to upstream.example
}

// A limit of each user and one of each route, of which no path has both: a call takes
// from the two, or from neither.
func ExampleClient_Limiter() {
	ctx := context.Background()
	client, err := ration.Local(`limits: [{key: "acme/user/{u}", rules: [2/1d]}, {key: "acme/route/{r}", rules: [100/1d]}]`)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	route, err := client.Limiter("acme/user/7", "acme/route/search")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(route.WaitN(ctx, 2))

	var refused *ration.Refused
	if err := route.WaitN(ctx, 3); errors.As(err, &refused) {
		fmt.Println(refused.Rule, "of", refused.Key)
	}
	// Output:
	// <nil>
	// 2/1d of acme/user/7
}

// An upstream that limits calls, and the tokens of a model that they cost: ask for
// the most that a call can cost, settle what it did.
func ExampleUnits() {
	ctx := context.Background()
	client, err := ration.Local(`limits: [{key: model, rules: [500/1m, 200000/1m unit=tokens]}]`)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	model, err := client.Limiter("model")
	if err != nil {
		log.Fatal(err)
	}
	handle, err := model.Acquire(ctx, 1, ration.Units{"tokens": 1200})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(handle.Settle(1, ration.Units{"tokens": 830})) // 370 go back

	var refused *ration.Refused
	if err := model.WaitN(ctx, 1, ration.Units{"tokens": 200001}); errors.As(err, &refused) {
		fmt.Println(refused.Rule, "never gives 200001")
	}
	// Output:
	// <nil>
	// 200000/1m unit=tokens never gives 200001
}

// Ask for the most that a call can cost, settle what it did.
func ExampleHandle_Settle() {
	ctx := context.Background()
	client, err := ration.Local(`limits: [{key: demo, rules: [100/1d]}]`)
	if err != nil {
		log.Fatal(err)
	}
	demo, err := client.Limiter("demo")
	if err != nil {
		log.Fatal(err)
	}
	handle, err := demo.Acquire(ctx, 50)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(handle.Settle(20))
	if err := client.Close(ctx); err != nil {
		log.Fatal(err)
	}
	books := client.Stats()
	fmt.Println(books.Granted == books.Spent+books.Returned+books.Expired, books.Spent)
	// Output:
	// <nil>
	// true 20
}
