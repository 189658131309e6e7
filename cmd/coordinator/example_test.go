package main

import (
	"fmt"

	"ration/algo"
)

// What check says of a rule: how much the upstream has to stand at its worst.
func Example() {
	for _, text := range []string{"100/1m", "100/1m fixed", "100/1m bucket burst=50", "4 concurrent"} {
		r, err := algo.ParseRule(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s\n", r, checkRule(r, 0, 0).WorstText)
	}
	// Output:
	// 100/1m: at most 100 in any 1m
	// 100/1m fixed: at most 200 in any 1m: 100 on each side of a boundary
	// 100/1m bucket burst=50: at most 150 in any 1m: 50 at once and 100 more
	// 4 concurrent: at most 4 at once
}
