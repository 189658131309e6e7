// Command bench measures the hot paths beside what they are compared with, and
// prints a line for each bound:
//
//	ratio NAME VALUE BOUND ok|short
//
// It ends with 1 if any is short. Without arguments it measures all; "allow" and
// "grants" measure one part.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"ration/bench/measure"
	"ration/bench/responder"
)

func main() {
	responder.Main()
	parts := os.Args[1:]
	if len(parts) == 0 {
		parts = []string{"allow", "grants"}
	}
	bounds := &measure.Bounds{To: os.Stdout}
	var errs []error
	for _, part := range parts {
		switch part {
		case "allow":
			errs = append(errs, allow(bounds))
		case "grants":
			errs = append(errs, grants(bounds))
		default:
			errs = append(errs, fmt.Errorf("bench: no part %.40q; there are allow and grants", part))
		}
	}
	exit(errors.Join(errs...))
	if bounds.Short > 0 {
		fmt.Fprintf(os.Stderr, "bench: %d short of their bounds\n", bounds.Short)
		os.Exit(1)
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// named gives the result of a case.
func named(results []measure.Result, name string) float64 {
	i := slices.IndexFunc(results, func(r measure.Result) bool { return r.Name == name })
	return results[i].Exact
}
