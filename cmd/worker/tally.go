package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"ration/cmd/internal/cli"
)

// tally counts what became of a run. It is safe for concurrent use.
type tally struct {
	mu    sync.Mutex
	began time.Time
	tallied
}

// tallied is the counts.
type tallied struct {
	waiting int           // callers that wait for a turn
	running int           // calls that are under way
	done    int           // calls that have ended well
	failed  int           // calls that have not
	late    int           // calls that had no turn within --wait
	refused int           // calls that the policy never grants
	unsent  int           // calls never made since the run ended
	rest    bool          // there was more to do, not even begun
	waited  time.Duration // in all, also by calls that were not sent
	fault   error         // the last failure that has not been told
	tardy   error         // of late, the last that has not been told
	refusal error         // that no waiting changes, and has been told
	broken  error         // what makes the run itself a failure, such as a full disk
}

func newTally() *tally { return &tally{began: time.Now()} }

func (t *tally) note(change func(*tallied)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.tallied)
}

// look gives the counts, and how long the run has lasted.
func (t *tally) look() (tallied, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tallied, time.Since(t.began)
}

// calls is how many calls were sent and have ended.
func (t *tallied) calls() int { return t.done + t.failed }

// progress is the line that is redrawn.
func (t *tally) progress() string {
	now, lasted := t.look()
	line := fmt.Sprintf("%d done", now.done)
	if now.failed > 0 {
		line += fmt.Sprintf(", %d failed", now.failed)
	}
	if now.late > 0 {
		line += fmt.Sprintf(", %d had no turn", now.late)
	}
	return fmt.Sprintf("%s, %s; %d running, %d waiting", line, rate(now.calls(), lasted), now.running, now.waiting)
}

// summary is the sentence at the end. noun is what a call is here.
func (t *tally) summary(noun string, keys []string) string {
	end, lasted := t.look()
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s on key %s", cli.Plural(end.calls(), noun), seconds(lasted), cli.Printable(keys[0], 60))
	for _, key := range keys[1:] {
		fmt.Fprintf(&b, " and %s", cli.Printable(key, 60))
	}
	if end.calls() > 0 {
		fmt.Fprintf(&b, " (%s)", rate(end.calls(), lasted))
	}
	if end.calls() > 0 || end.late > 0 {
		fmt.Fprintf(&b, ", waited %s in all", seconds(end.waited))
	}
	fmt.Fprintf(&b, ", %d failed", end.failed)
	if end.late > 0 {
		fmt.Fprintf(&b, ", %d had no turn within --wait", end.late)
	}
	if end.refused > 0 {
		fmt.Fprintf(&b, ", %d refused", end.refused)
	}
	if end.unsent > 0 {
		fmt.Fprintf(&b, ", %d not made since the run ended", end.unsent)
	}
	return b.String()
}

// verdict is the error that the run ends with.
func (t *tally) verdict() error {
	end, _ := t.look()
	switch {
	case end.broken != nil:
		return end.broken
	case end.refusal != nil:
		return &cli.Exit{Code: cli.Code(end.refusal)}
	case end.failed > 0:
		return &cli.Exit{Code: cli.Failed}
	case end.late > 0:
		return &cli.Exit{Code: cli.TimedOut}
	}
	return nil
}

// left says that something was to be made and was not, since the run ended.
func (t *tallied) left() bool { return t.unsent > 0 || t.rest }

func rate(n int, in time.Duration) string {
	return fmt.Sprintf("%.1f/s", float64(n)/max(in.Seconds(), 1e-9))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
