//go:build unix

package main

import (
	"os"
	"syscall"
)

// terminate asks the command, and what it started in its group, to end.
func terminate(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

// kill ends the command and its group.
func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// exitCode gives the exit code as a shell does, and whether a signal ended it.
func exitCode(s *os.ProcessState) (code int, cut bool) {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), true
	}
	return s.ExitCode(), false
}
