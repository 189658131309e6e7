// Package upstream is a strict upstream: an HTTP server that holds its callers
// to a contract and does not trust them.
//
// It keeps every arrival, also those it refused, and for each new one counts
// all of them by brute force: sliding windows are half-open, (t-W, t], so an
// arrival exactly W old counts no more. Where a contract is broken it answers
// 429 and remembers the violation, its rule and its instant. It shares no code
// with the limiter that it judges, only the rules' text with the oracle.
//
// A call may cost units besides: /search?unit=tokens=1200. A rule with unit=tokens
// counts those and nothing else.
//
// A contract binds every path at or below its prefix, segment by segment; all
// contracts that bind a path are asked. A call is under way from its arrival
// until its answer is written, also when the caller has left: concurrency rules
// count those.
//
// Two paths are not counted: /report tells what was seen as JSON, and /arrivals
// gives each arrival as JSON Lines that the oracle reads.
package upstream
