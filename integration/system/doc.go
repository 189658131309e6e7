// Package system tests the whole: real processes, real signals, NATS between
// them, and judges that share no code with what they judge.
//
// The law it looks for is that of every package, seen from outside: whatever is
// killed, stopped, paused, cancelled, dropped or restarted, no window of any
// limit sees more spends than its limit, and what was not spent comes back.
//
// Three kinds of test stand here. Those that need processes start the binaries.
// Those that need to look into the ledger run the coordinator in the test, behind
// a real NATS server, and note each promise before it is made, so that "not
// before its end" is compared with an instant and not with a pause. Those that
// need neither play a fleet in a bubble of virtual time.
//
// A test waits for what it expects to happen, never for a while, and none judges
// how long something took. Each has a short form for go test; -full, or
// RATION_PROOF=1 in the environment, plays it at full length and with the
// defaults of the product, and -v prints the figures.
package system
