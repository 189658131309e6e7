// Package tsc reads the processor's time stamp counter, which costs less than
// half of a reading of the system's clock.
//
// It measures no time: its rate is nobody's promise, and a machine that is moved or
// suspended may set it anywhere. It serves to see that next to no time has passed
// since the system's clock was read, and then only where it is Steady.
package tsc
