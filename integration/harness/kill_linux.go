package harness

import "syscall"

// ownGroup puts a process into a group of its own, so that Close reaches its
// children, and has the kernel kill it when the thread that started it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
