package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// verdict is what became of one test command.
type verdict uint8

const (
	passed   verdict = iota + 1 // of a mutant: it survived
	caught                      // a test failed, by an assertion or a check that panics
	unbuilt                     // it does not compile
	timedOut                    // it did not end in time
	crashed                     // it panicked where nothing was checked
	ranNone                     // no test matched
	broken                      // it failed, but no test did
)

// outcome is a verdict, which test failed first, and what the command printed.
type outcome struct {
	verdict verdict
	test    string
	tests   int // that were run
	took    time.Duration
	printed string
}

// A check of the product's own panics with its package's name in front.
var (
	checked  = regexp.MustCompile(`(?m)^.*panic: (algo|lease|coordinator|worker|sim): `)
	panicked = regexp.MustCompile(`(?m)^.*(panic: |fatal error: )`)
	accident = regexp.MustCompile(`(?m)runtime error: |^fatal error: `)
)

// event is a line of go test -json.
type event struct {
	Action, Test, Output, FailedBuild string
}

// test runs a go test command in root, with an overlay if one is given.
func test(ctx context.Context, root string, command []string, overlay string, limit time.Duration) outcome {
	args := []string{"test", "-json", "-vet=off", "-ldflags=-s", "-failfast", "-timeout=" + limit.String()}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, command[2:]...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOGC="+cmp.Or(os.Getenv("GOGC"), "400")) // compilers make much garbage, in short lives
	cmd.WaitDelay = time.Second                                              // for a test that outlives a go command that was stopped
	began := time.Now()
	out, err := cmd.CombinedOutput()
	o := read(out)
	o.took = time.Since(began)
	o.verdict = o.judge(err)
	return o
}

// read takes up what go test -json printed.
func read(out []byte) outcome {
	var o outcome
	var printed strings.Builder
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, len(out)+1)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			printed.Write(append(lines.Bytes(), '\n')) // the go command's own words
			continue
		}
		printed.WriteString(e.Output)
		switch {
		case e.Action == "build-fail" || e.FailedBuild != "":
			o.verdict = unbuilt
		case e.Action == "run":
			o.tests++
		case e.Action == "fail" && e.Test != "" && o.test == "":
			o.test = e.Test // a test within another fails before it
		}
	}
	o.printed = printed.String()
	return o
}

func (o outcome) judge(err error) verdict {
	switch {
	case o.verdict == unbuilt:
		return unbuilt
	case err == nil && o.tests == 0:
		return ranNone
	case err == nil:
		return passed
	case strings.Contains(o.printed, "panic: test timed out after"):
		return timedOut
	case accident.MatchString(o.printed),
		panicked.MatchString(o.printed) && !checked.MatchString(o.printed):
		return crashed
	case o.test != "":
		return caught
	case checked.MatchString(o.printed): // outside the test's goroutine
		return caught
	}
	return broken
}

// why says what a verdict that is neither passed nor caught means.
func (v verdict) why() string {
	switch v {
	case unbuilt:
		return "does not compile: a mutant is a fault that compiles; mend the patch"
	case timedOut:
		return "did not end in time: a test that waits for ever catches nothing; make one fail"
	case crashed:
		return "crashed where nothing was checked: that is luck; make a test fail"
	case ranNone:
		return "runs no test: mend the Test line"
	}
	return "failed, but no test did: mend the Test line"
}
