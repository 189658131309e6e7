package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// lives says that a process runs; one that has ended and was not waited for does
// not.
func lives(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func countNew(n *atomic.Int64) func(net.Conn, http.ConnState) {
	return func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			n.Add(1)
		}
	}
}

func checkLog(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	lines := bytes.Split(bytes.TrimSuffix([]byte(ts.ReadFile(args[0])), []byte("\n")), []byte("\n"))
	if len(lines[0]) == 0 {
		lines = nil
	}
	if len(lines) != want {
		ts.Fatalf("%s has %d lines, want %d", args[0], len(lines), want)
	}
	seen := map[string]bool{}
	for i, line := range lines {
		var e entry
		ts.Check(json.Unmarshal(line, &e))
		switch {
		case e.Key != args[2]:
			ts.Fatalf("line %d of %s is of key %q", i+1, args[0], e.Key)
		case e.Sent < 1e18, e.Done < e.Sent, e.Cost < 1:
			ts.Fatalf("line %d of %s says %s", i+1, args[0], line)
		case e.Item == nil:
		case e.Exit == nil:
			ts.Fatalf("line %d of %s has no exit code", i+1, args[0])
		case seen[*e.Item]:
			ts.Fatalf("item %q is in %s twice", *e.Item, args[0])
		default:
			seen[*e.Item] = true
		}
	}
}
