package lease_test

import (
	"fmt"
	"time"

	"ration/algo"
	"ration/lease"
)

// A holder leases two of three tokens, spends one and returns the other. The
// spent one is a second old, and the clock allowance more, before it is free.
func Example() {
	policy, err := lease.ParsePolicy("ration.yaml", []byte("limits: [{key: demo, rules: [3/1s]}]"))
	if err != nil {
		panic(err)
	}
	ledger := lease.NewLedger(policy, lease.DefaultConfig())
	start := algo.Instant(1_700_000_000e9)
	free := func(at time.Duration) {
		now := start.Add(at)
		ledger.Turn(now, nil)
		keys := ledger.Status(now, "").Keys
		if len(keys) == 0 {
			fmt.Printf("%-6v all is free, and nothing is kept\n", at)
			return
		}
		for _, w := range keys[0].Windows {
			fmt.Printf("%-6v %s: %d free, %d held, %d spent\n", at, w.Rule, w.Free, w.Held, w.Spent)
		}
	}

	holder := lease.Holder{Name: "shell-1", Incarnation: 0x7f3a}
	request := lease.Request{
		ID:   lease.ID{Holder: holder, Seq: 1},
		Keys: []lease.Key{"demo"},
		Want: lease.Amount{Tokens: 2},
		Need: lease.Amount{Tokens: 1},
	}
	turn := ledger.Turn(start, []lease.Message{{Ticket: 1, Arrived: start, Request: &request}})
	answer := turn.Answers[0].Answer
	fmt.Println(answer.ID, "may spend", answer.Granted.Tokens, "within", answer.TokenTTL-lease.Margin(answer.TokenTTL))
	free(0)

	at := start.Add(500 * time.Millisecond)
	report := lease.Report{
		Holder: holder,
		Sent:   500 * time.Millisecond,
		Counts: []lease.Count{{
			ID: request.ID, Keys: request.Keys,
			Points:   []lease.Point{{Count: 1, Age: 400 * time.Millisecond}},
			Returned: 1,
		}},
	}
	ledger.Turn(at, []lease.Message{{Ticket: 2, Arrived: at, Report: &report}})
	free(500 * time.Millisecond)
	free(1100 * time.Millisecond)
	free(1101 * time.Millisecond)
	// Output:
	// shell-1.7f3a/1 may spend 2 within 4.994999999s
	// 0s     3/1s: 1 free, 2 held, 0 spent
	// 500ms  3/1s: 2 free, 0 held, 1 spent
	// 1.1s   3/1s: 2 free, 0 held, 1 spent
	// 1.101s all is free, and nothing is kept
}

// A key is a path. Every prefix that the policy names is limited.
func ExampleParseKey() {
	key, err := lease.ParseKey("acme/prod/search")
	fmt.Println(key.Tenant(), err)
	for prefix := range key.Prefixes() {
		fmt.Println(prefix)
	}
	_, err = lease.ParseKey("acme//search")
	fmt.Println(err)
	// Output:
	// acme <nil>
	// acme
	// acme/prod
	// acme/prod/search
	// lease: bad key: segment 2 of "acme//search" is empty; remove the extra slash
}
