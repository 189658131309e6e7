// Package harness runs the real binaries: a process it has started never
// outlives the one that started it, and nothing it waits for is waited for by
// the clock.
//
// Bin is a folder of binaries; its methods start a coordinator, workers and the
// strict upstream, and return once each is ready, which they find out by asking.
// A Process captures what it writes, takes signals, and can be waited for. For
// tests, New wraps both: it builds what is needed, once, kills what is left when
// the test ends, and shows all output if it failed.
//
// Every wait takes a context, or is bounded by Patience, which is generous: it
// bounds a test that hangs, it does not judge one that is slow.
//
// All of it is safe for concurrent use. On Linux a process also dies if its
// parent is killed; elsewhere it dies only with Close.
package harness
