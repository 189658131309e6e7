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
		c := checkRule(r, 0, 0, 0)
		fmt.Printf("%s: %s; %s\n", r, c.WorstText, c.BurstText)
	}
	// Output:
	// 100/1m: at most 100 in any 1m; 100 at once
	// 100/1m fixed: at most 200 in any 1m: 100 on each side of a boundary; 100 at once
	// 100/1m bucket burst=50: at most 149 in any 1m: the burst and 99 more; 50 at once
	// 4 concurrent: at most 4 under way; 4 at once
}
