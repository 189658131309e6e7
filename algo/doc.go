// Package algo is the arithmetic of rate limits: rules, and the windows that
// keep them.
//
// The law: for each [Window], at each moment,
//
//	free + held + spent = limit
//
// and a token moves only so:
//
//	        take                 settle
//	free ───────────▶ held ───────────────▶ spent
//	 ▲                 │                      │
//	 │     return      │                      │  comes back (the rule says when)
//	 └─────────────────┘◀─────────────────────┘
//
// Held is what somebody may still spend, and counts in full. Spent ages from an
// instant that is never earlier than the real spend. So every spend inside any
// window that a rule speaks of was held, or already settled inside that window,
// when the last of its tokens was taken: it was counted then, and the limit
// holds, whatever lies between take and spend.
//
// The model: a [Rule] is what people write ([ParseRule]); [Compile] works out
// what an [Allowance] for guard and clock rates makes of it, once for all
// windows under one limit; a [Window] is the state of one key under one rule.
// The kinds differ only in when spent tokens come back:
//
//	10/1s              each one a period after its spend; the window is (t-W, t]
//	10000/1d fixed     all at the clock boundary, in UTC or the rule's zone
//	100/1m bucket      evenly, one per W/L, while any is spent
//	1000/1h counter    those of one period evenly during the next: an estimate
//	10/1s pace         all, one W/L after the last spend; until then none
//	4 concurrent       at once when returned; a guard after it is settled
//	unlimited          at once
//
// A rule counts calls, or another unit that it names: 200000/1m unit=tokens. That
// is a mark on the rule; a window counts whatever it is told.
//
// Use: ask Free, Take, and later Return what was not used and Settle what was,
// with the instant of the spend. Wait tells how long a refused taker has to
// wait, exactly.
//
// Nothing here reads a clock, starts a goroutine, locks or does IO, but that a
// rule that names a time zone looks for its data; the instant is an argument.
// Tokens and time are integers, and rounding goes against the caller. A refusal
// is a value (Free is less than was wanted); moving tokens that are not there is
// a bug, and panics with both numbers. No type of this package is safe for
// concurrent use, except that Rule, Allowance and Spec never change.
package algo
