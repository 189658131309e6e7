package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ration/cmd/internal/cli"
)

// locked is a writer that several may write to.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestServingLeavesNothingRunning(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var told locked
	ended := make(chan int, 1)
	go func() {
		args := []string{"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--name", "one"}
		ended <- run(ctx, args, cli.Streams{Out: &told, Err: &told})
	}()
	require.Eventually(t, func() bool { return strings.Contains(told.String(), "one leads cell default") }, time.Minute, time.Millisecond)
	stop()
	require.Equal(t, cli.Done, <-ended, told.String())
}
