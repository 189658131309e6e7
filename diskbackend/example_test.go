package diskbackend_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"ration/coordinator"
	"ration/diskbackend"
	"ration/lease"
)

// A coordinator that keeps its state in a directory knows after a restart what it has
// granted.
func Example() {
	dir, err := os.MkdirTemp("", "state")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	policy, err := lease.ParsePolicy("ration.yaml", []byte("limits: [{key: demo, rules: [10/1d]}]"))
	if err != nil {
		panic(err)
	}
	for seq := range uint64(2) {
		state, err := diskbackend.Open(dir)
		if err != nil {
			panic(err)
		}
		if _, err := diskbackend.Open(dir); errors.Is(err, diskbackend.ErrInUse) {
			fmt.Println("it has the directory")
		}
		config := coordinator.DefaultConfig(policy)
		config.Mirror, config.Elector = state, state
		c, err := coordinator.New(config)
		if err != nil {
			panic(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		err = c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			defer stop()
			answer, err := l.Acquire(ctx, lease.Request{
				ID:   lease.ID{Holder: lease.Holder{Name: "shell-1", Incarnation: 0x7f3a}, Seq: seq},
				Keys: []lease.Key{"demo"},
				Want: lease.Amount{Tokens: 8},
				Need: lease.Amount{Tokens: 1},
			})
			fmt.Println("granted", answer.Granted.Tokens)
			return err
		})
		fmt.Println("run:", err, "close:", state.Close())
	}
	// Output:
	// it has the directory
	// granted 8
	// run: <nil> close: <nil>
	// it has the directory
	// granted 2
	// run: <nil> close: <nil>
}
