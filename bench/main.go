// Command bench measures the hot paths beside what they are compared with, and
// prints a line for each bound:
//
//	ratio NAME VALUE BOUND ok|short
//
// It ends with 1 if any is short. Without arguments it measures all; the name of a
// part measures that alone. All but the first two need redis-server.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"ration/bench/measure"
	"ration/bench/responder"
)

func main() {
	responder.Main()
	all := map[string]func(*measure.Bounds) error{
		"allow": allow, "grants": grants, "mirrored": mirrored, "marks": marks, "takeover": takeover,
	}
	names := []string{"allow", "grants", "mirrored", "marks", "takeover"}
	chosen := os.Args[1:]
	if len(chosen) == 0 {
		chosen = names
	}
	bounds := &measure.Bounds{To: os.Stdout}
	var errs []error
	for _, name := range chosen {
		part, ok := all[name]
		if !ok {
			exit(fmt.Errorf("bench: no part %.40q; there are %s", name, strings.Join(names, ", ")))
		}
		errs = append(errs, part(bounds))
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
func named(results []measure.Result, name string) measure.Result {
	return results[slices.IndexFunc(results, func(r measure.Result) bool { return r.Name == name })]
}
