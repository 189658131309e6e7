package worker_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"ration/lease"
	"ration/worker"
)

// A pool asks, takes a grant, spends, reports, and gives back what is idle. Time
// is whatever its owner says.
func ExamplePool() {
	seq := uint64(0)
	ids := func() lease.ID {
		seq++
		return lease.ID{Holder: lease.Holder{Name: "w1"}, Seq: seq}
	}
	pool := worker.NewPool([]lease.Key{"acme"}, worker.DefaultPoolConfig(), ids, rand.New(rand.NewPCG(1, 1)))

	call := pool.Ask(0, 1, false, worker.Forever)
	request := pool.Requests(0)[0]
	fmt.Println(call.State(), "needs", request.Need.Tokens)

	pool.Answered(time.Millisecond, request.Sent, lease.Answer{
		ID: request.ID, Outcome: lease.Granted,
		Granted: lease.Amount{Tokens: 3}, TokenTTL: 5 * time.Second,
		Terms: lease.Terms{Window: time.Second},
	})
	fmt.Println(call.State(), pool.Spend(2*time.Millisecond, call), call.State())
	pool.Finish(3*time.Millisecond, call)

	pool.Tick(400 * time.Millisecond)
	counts, _ := pool.Report(400*time.Millisecond, false)
	fmt.Println(counts[0].Points[0].Count, "spent", counts[0].Points[0].Age, "ago,", counts[0].Returned, "returned")
	// Output:
	// waiting needs 1
	// taken true running
	// 1 spent 398ms ago, 2 returned
}
