package sim_test

import (
	"fmt"

	"ration/integration/sim"
)

// A world is a function of its seed.
func ExampleRun() {
	v := sim.Run(2)
	fmt.Println(len(v.Violations), "violations,", len(v.Stranded), "things stranded")
	fmt.Println("use is high:", v.Use >= 0.95)
	// Output:
	// 0 violations, 0 things stranded
	// use is high: true
}
