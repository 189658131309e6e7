package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"ration/integration/upstream"

	"github.com/stretchr/testify/require"
)

func TestServesUntilItIsToldToStopAndReports(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	lines, stderr := io.Pipe()
	var stdout bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--contract", "1/1h", "--contract", "/a=4 concurrent"}, &stdout, stderr)
	}()
	buffer := make([]byte, 1024)
	n, err := lines.Read(buffer)
	require.NoError(t, err)
	_, url, ok := strings.Cut(strings.TrimSpace(string(buffer[:n])), "serving ")
	require.True(t, ok, string(buffer[:n]))
	for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		resp, err := http.Get(url + "/a")
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, want, resp.StatusCode)
	}
	stop()
	require.NoError(t, <-ended)
	var report upstream.Report
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &report))
	require.EqualValues(t, 2, report.Arrivals)
	require.Len(t, report.Contracts, 2)
	require.Equal(t, 1, report.Violations())
}

func TestMisuseIsAnError(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	for _, args := range [][]string{{"--contract", "five"}, {"--delay", "soon"}, {"--listen", "nowhere:nothing"}, {"--what"}, {"5/1s"}} {
		require.Error(t, run(ctx, args, io.Discard, io.Discard), "%v", args)
	}
	require.ErrorIs(t, run(ctx, []string{"--help"}, io.Discard, io.Discard), flag.ErrHelp)
	require.NoError(t, run(ctx, nil, io.Discard, os.Stderr))
}
