// Package sim plays a coordinator and a fleet of holders on one seeded event
// heap, in virtual time, and lets go wrong what can: messages are lost, late,
// doubled and overtaken, processes pause and crash, clocks run apart and are set,
// NATS nodes lose each other, the store hangs, forgets its tail or everything,
// callers give up at any instant. It runs the binaries' own ledger, turn and pool
// code; only what reads clocks, starts goroutines and sends bytes is its own.
//
// Afterwards the oracle, which shares no code with what it judges, looks at what
// was spent. Then the faults stop: now the fleet must use what it may, since
// granting nothing is safe too, and at last everything must be free again.
//
// A run is a function of its seed. Every fault and every rare branch is named and counted;
// one that stayed at zero over many seeds fails the test, since a simulation that
// cannot fail proves nothing. Stories are worlds in which only that goes wrong which a
// test tells.
package sim
