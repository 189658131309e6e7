package main

import "syscall"

// dieWithUs has the kernel kill a command when the thread that started it ends,
// which is when this process does, however it does.
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
