//go:build !linux || !amd64

package tsc

// Steady says that the counter can be relied on: here it never can.
func Steady() bool { return false }
