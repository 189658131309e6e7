// Package coordinator is the shell around a ledger: it leads, takes turns, and
// answers only what is recorded.
//
// Leadership is a scope. [Coordinator.Run] campaigns for the seat and, once it is
// won, runs a serve function with a [Leader]; the lessor exists only inside that
// function, and whatever was started in it has ended when Run campaigns again or
// returns.
//
// One goroutine owns the ledger. Each turn takes all messages that wait, reads
// the instant, steps the ledger, and records the turn in the mirror while the
// next messages gather; only then do the turn's answers leave. So nothing was
// ever promised that a successor would not know.
//
// Under a policy that says "mirror: available" that ends while the mirror does not
// answer: turns are answered without it, and [Leader.Behind] says so until what they
// changed is written back.
//
// [Memory] is a mirror and a seat in this process: for one coordinator, and for
// tests. With it a restart forgets what was spent.
package coordinator
