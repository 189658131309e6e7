// Command mutants shows that the tests can fail. Each patch in patches/ is one
// fault, a line or a few, of the kind that a reader might make or pass over. It
// is laid over the sources with go test -overlay, so the product has no hooks
// and the tree is never touched, and then every test that the patch names has
// to catch it: to fail, by an assertion or by a check of the product's own that
// panics. A mutant that survives is a missing test.
//
// What is no catch ends the run with a line that says so: a patch that does not
// apply any more, one that does not compile, a test that runs out of time, one
// that crashes by accident, and one that fails without any patch or runs
// nothing.
//
// A patch begins with lines about itself, up to its first "---":
//
//	What: held tokens do not count against the limit
//	By: simulation
//	Test: go test ./integration/sim -run TestSimulation -seeds 320
//
// By is simulation, story, law or another word for what catches it; it is
// simulation exactly where all its tests are the simulation's. At least half of
// the mutants have to be caught by the simulation alone. Several Test lines are
// several tests, of which each has to catch it. Words are divided at spaces;
// there is no quoting.
//
// A further line, First: 17, names the world of the simulation that caught the
// mutant last. It is played before the others, for speed alone.
//
// To write one, make the fault, check that a test fails, and keep git diff -U2
// below such lines; then take the fault out again.
package main
