package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"ration/integration/harness"
)

func main() {
	only := flag.String("run", "", "try only the mutants whose names match this `regexp`")
	list := flag.Bool("list", false, "list the mutants, and try none")
	parallel := flag.Int("parallel", 2, "try so many at a time")
	limit := flag.Duration("timeout", 15*time.Minute, "how long one test command may take")
	passing := flag.Bool("passing", false, "take it that the tests pass over the sources as they are; else that is seen first")
	verbose := flag.Bool("v", false, "print what the tests that catch a mutant say")
	flag.Parse()
	match, err := regexp.Compile(*only)
	switch {
	case err != nil:
		misused("-run: " + err.Error())
	case flag.NArg() > 0:
		misused(fmt.Sprintf("%q is no flag", flag.Arg(0)))
	case *parallel < 1 || *limit <= 0:
		misused(fmt.Sprintf("-parallel is %d and -timeout %v; both have to be above 0", *parallel, *limit))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	t := trial{parallel: *parallel, limit: *limit, passing: *passing, verbose: *verbose, out: os.Stdout}
	if err := t.main(ctx, match, *list); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func misused(why string) {
	fmt.Fprintln(os.Stderr, "mutants: "+why)
	os.Exit(2)
}

// main tries the mutants of the module that match, or lists them.
func (t trial) main(ctx context.Context, match *regexp.Regexp, list bool) error {
	root, err := harness.Root(ctx)
	if err != nil {
		return err
	}
	t.root = root
	all, err := load(filepath.Join(root, "integration", "mutants", "patches"))
	if err != nil {
		return err
	}
	if err := half(all); err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m mutant) bool { return !match.MatchString(m.name) })
	if len(all) == 0 {
		return errors.New("mutants: none has such a name; see -list")
	}
	if list {
		w := widths(all)
		for _, m := range all {
			row(t.out, w, m.name, m.what, "", m.by)
		}
		return nil
	}
	if t.dir, err = os.MkdirTemp("", "mutants"); err != nil {
		return err
	}
	defer os.RemoveAll(t.dir)
	return t.run(ctx, all)
}

// half demands that the simulation alone catches at least half of the mutants, but for
// those of scripts: it has no Redis that runs them.
func half(all []mutant) error {
	n, of := 0, 0
	for _, m := range all {
		if m.script() {
			continue
		}
		if of++; m.by == simulation {
			n++
		}
	}
	if 2*n < of {
		return fmt.Errorf("mutants: %d of %d are caught by the simulation alone; it has to be at least half", n, of)
	}
	return nil
}
