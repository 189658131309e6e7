// Package ration shares rate limits among a fleet of processes.
//
// The law it keeps: for each window of each limit, at each moment, free + held +
// spent = limit. Whatever crashes, stops, repeats or comes late, no window sees
// more spends than its limit.
//
// A coordinator owns the state of every window. A process leases tokens from it
// in batches, spends them locally in nanoseconds, and returns what it does not
// use. [Connect] joins the fleet over NATS; [Local] does the same for one process
// with no network, and for tests.
//
//	client, err := ration.Connect("nats://127.0.0.1:4222")
//	...
//	defer client.Close(context.Background())
//	search, err := client.Limiter("acme/prod/search")
//	...
//	err = search.Wait(ctx) // then call the upstream
//
// Where one path does not say what is limited, a limiter may have several keys, such as
// the user who calls and the route that is called: see [Client.Limiter].
//
// A [Limiter] has the shape of golang.org/x/time/rate: Allow, AllowN, Wait,
// WaitN. [Limiter.Acquire] gives a [Handle], for upstreams that cap how many calls
// run at once, for calls that may not leave after all, and for costs that are
// known only afterwards. Where calls cost something else as well, such as the
// tokens of a model, [Units] say how much.
//
// Not promised: a spend is counted when the call is let go, so a process that is
// stopped between that and its sending arrives late; the limit's guard bounds how
// much later one call may arrive than another. Neither is a machine whose clocks
// all stand still, nor one restored from a copy.
package ration
