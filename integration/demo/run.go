package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"ration/integration/harness"
	"ration/integration/oracle"
	"ration/integration/upstream"
)

// The contract and the guard, once more and by themselves: what judges the
// demo does not read the policy.
const (
	contract = "5/1s, 12/3s"
	guard    = 60 * time.Millisecond
)

//go:embed policy.yaml
var policy []byte

// shares are how many calls each worker has to make.
var shares = []int{8, 8, 7, 7}

func total() int {
	n := 0
	for _, s := range shares {
		n += s
	}
	return n
}

// ideal is the least time in which anybody can make all calls, if windows have
// to be kept that much longer.
func ideal(guard time.Duration) time.Duration {
	return oracle.Schedule{Rules: oracle.Wider(oracle.MustRules(contract), guard)}.Length(total())
}

// seen is what came of it.
type seen struct {
	logs     [][]oracle.Spend // of each worker
	report   upstream.Report
	arrivals []oracle.Spend // at the upstream; each worker calls a path of its own
}

// path is what the worker calls, so that its arrivals can be told from others'.
func path(worker int) string { return fmt.Sprintf("/worker-%d", worker+1) }

// run plays the demo once. It leaves no process and no file behind.
func run(ctx context.Context, bin harness.Bin) (*seen, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, harness.Patience, fmt.Errorf("it has taken %v", harness.Patience))
	defer cancel()
	dir, err := os.MkdirTemp("", "ration-demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, policy, 0o600); err != nil {
		return nil, err
	}
	strict, err := bin.Upstream(ctx, "--contract", contract)
	if err != nil {
		return nil, err
	}
	defer strict.Close()
	lessor, err := bin.Coordinator(ctx, harness.CoordinatorConfig{Policy: file})
	if err != nil {
		return nil, err
	}
	defer lessor.Close()
	logs, err := work(ctx, bin, lessor.NATS, strict.URL, dir)
	if err != nil {
		return nil, err
	}
	report, err := strict.Report(ctx)
	if err != nil {
		return nil, err
	}
	arrivals, err := strict.Arrivals(ctx)
	return &seen{logs, report, arrivals}, err
}

// work runs the workers, all at once, and gives their logs.
func work(ctx context.Context, bin harness.Bin, nats, url, dir string) ([][]oracle.Spend, error) {
	var workers []*harness.Process
	var files []string
	for i, share := range shares {
		files = append(files, filepath.Join(dir, fmt.Sprintf("%d.jsonl", i+1)))
		w, err := bin.Worker(nats, fmt.Sprintf("worker %d", i+1), "load",
			"--key", "demo", "--get", url+path(i), "-j", "1", "--count", strconv.Itoa(share), "--log", files[i])
		if err != nil {
			return nil, err
		}
		defer w.Close()
		workers = append(workers, w)
	}
	var failed []error
	for _, w := range workers {
		code, err := w.Wait(ctx)
		if err == nil && code != 0 {
			err = fmt.Errorf("%s exited with %d:\n%s", w.Name, code, w.Output())
		}
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	logs := make([][]oracle.Spend, len(files))
	for i, file := range files {
		var err error
		if logs[i], err = oracle.ReadFiles(file); err != nil {
			return nil, err
		}
	}
	return logs, nil
}
