package measure

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// Case is one thing to be timed.
type Case struct {
	Name string
	// Run does it n times, from as many goroutines as it likes. An error ends the
	// measurement.
	Run func(n int) error
}

// Result is the median of a case's rounds.
type Result struct {
	Name string
	// Each is how long one operation took: the wall time of a round by the
	// number of operations in it.
	Each time.Duration
	// PerSecond is how many operations there were in a second.
	PerSecond float64
	// Exact is Each with its fraction of a nanosecond.
	Exact float64

	rounds []float64 // what Exact was in each
}

// Over is how many times as long a takes as b: the median over the rounds of both, each
// of which has had the machine in much the same state for the two.
func (a Result) Over(b Result) float64 {
	ratios := make([]float64, len(a.rounds))
	for i := range ratios {
		ratios[i] = a.rounds[i] / b.rounds[i]
	}
	return Median(ratios)
}

// Rounds times the cases in turn, rounds times each, in rounds of about the
// given length.
func Rounds(rounds int, length time.Duration, cases ...Case) ([]Result, error) {
	sizes := make([]int, len(cases))
	for i, c := range cases {
		var err error
		if sizes[i], err = size(c, length); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	times := make([][]float64, len(cases))
	for range rounds {
		for i, c := range cases {
			began := time.Now()
			if err := c.Run(sizes[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			times[i] = append(times[i], float64(time.Since(began))/float64(sizes[i]))
		}
	}
	results := make([]Result, len(cases))
	for i, c := range cases {
		each := Median(times[i])
		results[i] = Result{Name: c.Name, Each: time.Duration(each), PerSecond: 1e9 / each, Exact: each, rounds: times[i]}
	}
	return results, nil
}

// size is how many operations take about so long.
func size(c Case, length time.Duration) (int, error) {
	for n := 64; ; n *= 2 {
		began := time.Now()
		if err := c.Run(n); err != nil {
			return 0, err
		}
		if took := time.Since(began); took > length/8 {
			return max(1, int(float64(n)*float64(length)/float64(took))), nil
		}
	}
}

// Median is the middle one, the lower of two.
func Median[T cmp.Ordered](of []T) T {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[(len(sorted)-1)/2]
}

// Table prints results in columns, each beside the first.
func Table(to io.Writer, title string, results []Result) {
	fmt.Fprintf(to, "\n%s\n", title)
	width := 0
	for _, r := range results {
		width = max(width, len(r.Name))
	}
	for _, r := range results {
		fmt.Fprintf(to, "  %-*s %12.1f ns %14.0f/s %8.2f\n", width, r.Name, r.Exact, r.PerSecond, r.Exact/results[0].Exact)
	}
}
