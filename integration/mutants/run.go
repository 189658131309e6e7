package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// trial is a run over mutants.
type trial struct {
	root     string        // of the module
	dir      string        // for copies of sources
	parallel int           // commands at a time
	limit    time.Duration // of one command
	passing  bool          // the tests are known to pass over the sources as they are
	verbose  bool          // show what the tests that catch print
	out      io.Writer
}

// errSurvived says that there are mutants which no test caught.
var errSurvived = errors.New("mutants: some survived")

// run tries all mutants and prints what became of them. Its error is
// errSurvived, or what ended the run.
func (t trial) run(ctx context.Context, all []mutant) error {
	began := time.Now()
	overlays := make([]string, len(all))
	var unfits []error
	for i, m := range all {
		var err error
		overlays[i], err = lay(ctx, t.root, t.dir, m)
		unfits = append(unfits, err)
	}
	if err := errors.Join(unfits...); err != nil {
		return err
	}
	if !t.passing {
		if err := t.unpatched(ctx, all); err != nil {
			return err
		}
	}
	width := widths(all)
	row(t.out, width, "MUTANT", "WHAT IT BREAKS", "SECONDS", "CAUGHT BY")
	survived, simulated := 0, 0
	err := inOrder(ctx, t.parallel, len(all), func(ctx context.Context, i int) fate {
		return t.try(ctx, all[i], overlays[i])
	}, func(i int, f fate) error {
		m := all[i]
		row(t.out, width, m.name, m.what, fmt.Sprintf("%.1f", f.took.Seconds()), f.caught())
		if f.printed != "" {
			fmt.Fprintf(t.out, "%s\n", f.printed)
		}
		if f.survived != "" {
			survived++
		} else if m.by == simulation {
			simulated++
		}
		return f.err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "\n%d of %d mutants caught, %d by the simulation alone, in %.0f s\n",
		len(all)-survived, len(all), simulated, time.Since(began).Seconds())
	if survived > 0 {
		return errSurvived
	}
	return nil
}

// unpatched runs each command once over the sources as they are: a test that
// fails anyhow catches nothing.
func (t trial) unpatched(ctx context.Context, all []mutant) error {
	var commands [][]string
	for _, m := range all {
		for _, c := range m.tests {
			if !slices.ContainsFunc(commands, func(o []string) bool { return slices.Equal(o, c) }) {
				commands = append(commands, c)
			}
		}
	}
	began := time.Now()
	err := inOrder(ctx, t.parallel, len(commands), func(ctx context.Context, i int) outcome {
		return test(ctx, t.root, commands[i], "", t.limit)
	}, func(i int, o outcome) error {
		switch o.verdict {
		case passed:
			return nil
		case caught:
			return fmt.Errorf("mutants: %s fails without any patch: mend that first\n%s", strings.Join(commands[i], " "), o.printed)
		}
		return fmt.Errorf("mutants: without any patch, %s %s\n%s", strings.Join(commands[i], " "), o.verdict.why(), o.printed)
	})
	if err == nil {
		fmt.Fprintf(t.out, "%d test commands pass over the sources as they are, in %.0f s\n\n", len(commands), time.Since(began).Seconds())
	}
	return err
}

// fate is what became of a mutant.
type fate struct {
	tests    []string // that caught it
	survived string   // the command that did not
	took     time.Duration
	printed  string
	err      error // what is no catch
}

func (f fate) caught() string {
	if f.survived != "" {
		return "SURVIVED " + f.survived
	}
	return strings.Join(f.tests, ", ")
}

// try runs a mutant's tests, of which each has to catch it.
func (t trial) try(ctx context.Context, m mutant, overlay string) (f fate) {
	for _, command := range m.tests {
		o := test(ctx, t.root, m.command(command), overlay, t.limit)
		f.took += o.took
		if t.verbose {
			f.printed += o.printed
		}
		switch o.verdict {
		case caught:
			f.tests = append(f.tests, o.test)
		case passed:
			f.survived = strings.Join(command, " ")
			return f
		default:
			f.err = fmt.Errorf("mutants: %s, under %s, %s\n%s", m.name, strings.Join(command, " "), o.verdict.why(), o.printed)
			return f
		}
	}
	return f
}

// inOrder does n things, so many at a time, and hands on what came of them in
// order. It stops at the first error of got, and when ctx ends.
func inOrder[T any](ctx context.Context, parallel, n int, do func(context.Context, int) T, got func(int, T) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	next := make(chan int, n)
	results := make([]chan T, n)
	for i := range n {
		next <- i
		results[i] = make(chan T, 1)
	}
	close(next)
	for range min(parallel, n) {
		workers.Go(func() {
			for i := range next {
				if ctx.Err() != nil {
					return
				}
				results[i] <- do(ctx, i)
			}
		})
	}
	for i := range n {
		select {
		case r := <-results[i]:
			if err := ctx.Err(); err != nil {
				return err // what was cut short says nothing
			}
			if err := got(i, r); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// widths are those of the first two columns.
func widths(all []mutant) [2]int {
	w := [2]int{len("MUTANT"), len("WHAT IT BREAKS")}
	for _, m := range all {
		w[0], w[1] = max(w[0], len(m.name)), max(w[1], len(m.what))
	}
	return w
}

func row(out io.Writer, w [2]int, name, what, seconds, by string) {
	fmt.Fprintf(out, "%-*s  %-*s  %7s  %s\n", w[0], name, w[1], what, seconds, by)
}
