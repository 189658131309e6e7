package algo_test

import (
	"errors"
	"fmt"
	"time"

	"ration/algo"
)

// Two calls a second. The third has to wait for the first to be a second old.
func Example() {
	rule, err := algo.ParseRule("2/1s")
	if err != nil {
		panic(err)
	}
	spec := algo.Compile(rule, algo.Allowance{})
	now := algo.Instant(0)
	window := spec.Window(now)

	window.Take(now, 2)
	window.Settle(now, 1, now)
	now = now.Add(300 * time.Millisecond)
	window.Settle(now, 1, now)

	wait, _ := window.Wait(now, 1, nil)
	fmt.Println(window.Free(now), window.Held(), window.Spent(now), wait)
	now = now.Add(wait)
	fmt.Println(window.Free(now), window.Held(), window.Spent(now))
	// Output:
	// 0 0 2 700ms
	// 1 0 1
}

// What is held counts in full; returned, it is free again.
func ExampleWindow_Return() {
	rule, _ := algo.ParseRule("100/1m bucket burst=50")
	window := algo.Compile(rule, algo.Allowance{}).Window(0)
	window.Take(0, 50)
	fmt.Println(window.Free(0))
	window.Return(0, 20)
	fmt.Println(window.Free(0))
	// Output:
	// 0
	// 20
}

// Held tokens are reckoned as due says. Without it, as returned now.
func ExampleWindow_Wait() {
	rule, _ := algo.ParseRule("10/1s")
	window := algo.Compile(rule, algo.Allowance{}).Window(0)
	window.Take(0, 10)
	expiry := algo.Instant(0).Add(5 * time.Second)
	latest, _ := window.Wait(0, 1, []algo.Due{{At: expiry, N: 10}})
	soonest, _ := window.Wait(0, 1, nil)
	_, ever := window.Wait(0, 11, nil)
	fmt.Println(latest, soonest, ever)
	// Output: 6s 0s false
}

// State goes out, to a mirror, and comes back in.
func ExampleSpec_Restore() {
	rule, _ := algo.ParseRule("10/1s")
	spec := algo.Compile(rule, algo.Allowance{Guard: 50 * time.Millisecond})
	window := spec.Window(0)
	window.Take(0, 4)
	window.Settle(0, 3, 0)

	state := window.State(0)
	fmt.Printf("%+v\n", state)
	again := spec.Restore(state)
	fmt.Println(again.Free(0), again.Held(), again.Spent(0))
	// Output:
	// {Seen:0 Held:1 Spent:3 Own:0 Marks:[{At:0 N:3}]}
	// 6 1 3
}

// A burst of 1 does not survive a guard in which another token flows in.
func ExampleRule_Starved() {
	rule, _ := algo.ParseRule("10/1s bucket burst=1")
	fmt.Println(rule.Starved(50 * time.Millisecond))
	rule, _ = algo.ParseRule("10/1s bucket burst=20")
	fmt.Println(algo.Compile(rule, algo.Allowance{Guard: 50 * time.Millisecond}).Max())
	// Output:
	// a guard of 50ms takes 1 of a burst of 1, and nothing is ever granted write burst=2 or more, or a shorter guard
	// 19
}

// On a Sunday in October the day has 25 hours in Berlin.
func ExampleCompile_zone() {
	rule, _ := algo.ParseRule("10000/1d fixed tz=Europe/Berlin")
	midnight := algo.Instant(time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC).UnixNano())
	window := algo.Compile(rule, algo.Allowance{}).Window(midnight)
	window.Take(midnight, 10000)
	window.Settle(midnight, 10000, midnight)
	fmt.Println(window.Wait(midnight, 1, nil))
	// Output: 25h0m0s true
}

// 80 in the minute before, 30 in this one, of which 40 % are over: 48 and 30.
func ExampleCompile_counter() {
	rule, _ := algo.ParseRule("100/1m counter")
	now := algo.Instant(0)
	window := algo.Compile(rule, algo.Allowance{}).Window(now)
	spend := func(n int64) {
		window.Take(now, n)
		window.Settle(now, n, now)
	}
	spend(80)
	now = now.Add(time.Minute)
	spend(20)
	now = now.Add(24 * time.Second)
	spend(10)
	fmt.Println(window.Spent(now), window.Free(now))
	// Output: 78 22
}

func ExampleParseRule() {
	for _, text := range []string{"500 per minute", "10000/day fixed", "100/1m bucket burst=50", "4 concurrent"} {
		rule, _ := algo.ParseRule(text)
		fmt.Println(rule, "|", rule.Kind, rule.Limit, rule.Span())
	}
	// Output:
	// 500/1m | sliding 500 1m0s
	// 10000/1d fixed | fixed 10000 24h0m0s
	// 100/1m bucket burst=50 | bucket 100 1m0s
	// 4 concurrent | concurrent 4 0s
}

func ExampleRuleError() {
	_, err := algo.ParseRule("0.2/1s")
	var wrong *algo.RuleError
	if errors.As(err, &wrong) {
		fmt.Println("column", wrong.Column)
		fmt.Println(wrong.Problem)
	}
	// Output:
	// column 1
	// the limit is a fraction
}
