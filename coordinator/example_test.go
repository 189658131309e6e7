package coordinator_test

import (
	"context"
	"fmt"

	"ration/coordinator"
	"ration/lease"
)

// A coordinator in memory wins its seat at once. Its leader lives as long as the
// function that it is handed to.
func Example() {
	policy, err := lease.ParsePolicy("ration.yaml", []byte("limits: [{key: demo, rules: [10/1d]}]"))
	if err != nil {
		panic(err)
	}
	c, err := coordinator.New(coordinator.DefaultConfig(policy))
	if err != nil {
		panic(err)
	}
	ask := func(ctx context.Context, l *coordinator.Leader, seq uint64, need int64) {
		answer, err := l.Acquire(ctx, lease.Request{
			ID:   lease.ID{Holder: lease.Holder{Name: "shell-1", Incarnation: 0x7f3a}, Seq: seq},
			Keys: []lease.Key{"demo"},
			Want: lease.Amount{Tokens: need},
			Need: lease.Amount{Tokens: need},
		})
		switch {
		case err != nil:
			fmt.Println("no answer:", err)
		case answer.Outcome == lease.Refused:
			fmt.Println(answer.ID, "is refused:", answer.Refusal.Reason, "of", answer.Refusal.Rule)
		default:
			fmt.Println(answer.ID, "is granted", answer.Granted.Tokens)
		}
	}
	var gone *coordinator.Leader
	err = c.Run(context.Background(), func(ctx context.Context, l *coordinator.Leader) error {
		ask(ctx, l, 1, 8)
		ask(ctx, l, 2, 8)
		ask(ctx, l, 1, 8) // a copy of the first: answered again, not granted again
		gone = l
		return nil
	})
	fmt.Println("run:", err)
	ask(context.Background(), gone, 3, 1)
	// Output:
	// shell-1.7f3a/1 is granted 8
	// shell-1.7f3a/2 is refused: lease: the limit is reached of 10/1d
	// shell-1.7f3a/1 is granted 8
	// run: <nil>
	// no answer: lease: it has been stopped
}
