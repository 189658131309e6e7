//go:build unix && !linux

package main

import "syscall"

// dieWithUs gives commands a group of their own. Only Linux can also kill them
// when this process is killed.
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
