//go:build unix && !linux

package harness

import "syscall"

// ownGroup puts a process into a group of its own, so that Close reaches its
// children.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
