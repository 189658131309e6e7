package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// killStrays kills what bears the mark in its environment, until for a while
// nothing does: something may be starting just then, and have no environment yet.
func killStrays(mark string) {
	quiet := 0
	for i := 0; i < 100 && quiet < 4; i++ {
		if quiet++; killMarked(mark) {
			quiet = 0
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func killMarked(mark string) (found bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil {
			continue // it has ended, or is not ours
		}
		for v := range bytes.SplitSeq(environ, []byte{0}) {
			if string(v) == mark && syscall.Kill(pid, syscall.SIGKILL) == nil {
				found = true
			}
		}
	}
	return found
}
