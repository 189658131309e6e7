package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"ration/integration/oracle"
)

// all is every spend of every worker, in order.
func (s *seen) all() []oracle.Spend {
	all := slices.Concat(s.logs...)
	oracle.Sort(all)
	return all
}

// took is the time from the first spend to the last.
func (s *seen) took() time.Duration {
	all := s.all()
	if len(all) == 0 {
		return 0
	}
	return time.Duration(all[len(all)-1].At - all[0].At)
}

// spread is how much later one call took from its spend to its arrival than
// another: what the guard has to cover. Each worker makes its calls one after
// another, so they arrive in the order of its log.
func (s *seen) spread() time.Duration {
	var ways []int64
	for i, log := range s.logs {
		arrived := oracle.Under(s.arrivals, path(i))
		for j := range min(len(log), len(arrived)) {
			ways = append(ways, arrived[j].At-log[j].At)
		}
	}
	if len(ways) == 0 {
		return 0
	}
	return time.Duration(slices.Max(ways) - slices.Min(ways))
}

// complaints is what went wrong, one sentence each: nothing, if all is well.
func (s *seen) complaints() []string { return slices.Concat(s.broken(), s.late()) }

// broken is what the fleet did wrong: a limit passed in what it sent, a call too
// few or too many.
func (s *seen) broken() []string {
	var found []string
	for _, v := range oracle.Violations(s.all(), oracle.MustRules(contract)) {
		found = append(found, "in the workers' logs "+v.String())
	}
	if n := len(s.all()); n != total() || s.report.Arrivals != int64(total()) {
		found = append(found, fmt.Sprintf("%d calls were to be made, %d were granted and %d arrived", total(), n, s.report.Arrivals))
	}
	return found
}

// late is what the upstream complains of, and whether the calls' ways there
// differed by more than the guard covers, as on a machine with too much to do.
func (s *seen) late() []string {
	var found []string
	for _, c := range s.report.Contracts {
		for _, v := range c.Violations {
			found = append(found, fmt.Sprintf("a call arrived as number %d under %s, %.3f s after the first",
				v.Load, v.Rule, time.Duration(v.At-s.report.First).Seconds()))
		}
	}
	if spread := s.spread(); len(found) > 0 && spread > guard {
		found = slices.Insert(found, 0, fmt.Sprintf("one call was %v longer on its way than another, and the guard is %v",
			spread.Round(time.Millisecond), guard))
	}
	return found
}

func (s *seen) good() bool { return len(s.complaints()) == 0 }

// write prints the table.
func (s *seen) write(out io.Writer) {
	row := func(name, figure, note string) {
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("  %-22s %6s   %s", name, figure, note), " "))
	}
	inSeconds := func(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
	for i, log := range s.logs {
		row(fmt.Sprintf("worker %d was granted", i+1), fmt.Sprint(len(log)), "")
	}
	row("together", fmt.Sprint(len(s.all())), fmt.Sprintf("of which %d arrived at the upstream", s.report.Arrivals))
	row("they took", inSeconds(s.took()), "from the first call to the last")
	row("ideal schedule", inSeconds(ideal(0)), fmt.Sprintf("%s with the guard of %v", inSeconds(ideal(guard)), guard))
	row("violations", fmt.Sprint(s.report.Violations()), "as the strict upstream counted them")
	for i, c := range s.complaints() {
		if i == 3 {
			fmt.Fprintln(out, "  and more")
			break
		}
		fmt.Fprintln(out, "  "+c)
	}
}
