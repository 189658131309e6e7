// Package lease holds the law of the whole: a token of a limit is always in
// exactly one of three places.
//
//	         take                 settle
//	free ───────────▶ held ───────────────▶ spent
//	 ▲                 │                      │
//	 │     return      │                      │  comes back (the rule says when)
//	 └─────────────────┘◀─────────────────────┘
//
// For each window, at each moment, free + held + spent = limit. What a lease
// carries is held, and counts in full in every window it could still be spent
// in; what is spent ages from an instant that is never earlier than the real
// spend. So the limit holds whatever lies between a grant and its spend, and
// whoever dies, pauses or loses messages in between.
//
// A [Ledger] keeps that law for many keys with many windows each. It is pure: it
// is handed the instant and the messages of a turn and says what follows. All
// windows of all prefixes of a request's keys are asked first, and all take at
// one instant, or none does.
//
// A holder is one life of one worker process. It asks for a lease with a
// [Request], spends the lease's tokens by itself, and tells what it did with a
// [Report]. Requests and reports may be lost, late, repeated or reordered: ids
// make requests the same however often they are asked, and counts are
// cumulative. Freeing is by naming only: what a message does not name it does
// not touch, and absence is no evidence.
//
// The ports are [Lessor], which grants leases, [Mirror], which keeps a copy of a
// ledger that outlives its leader, and [Elector], which says who leads. A
// [Policy] says which keys have which limits.
package lease
