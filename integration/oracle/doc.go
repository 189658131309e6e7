// Package oracle is the only definition of correct: it looks at what was spent
// and says whether any window of any limit saw more than its limit.
//
// A log of spends is a plain list of instants, and a contract is a few rules
// stated plainly, such as "200/1s", "12/3s" or "16 concurrent". The oracle
// counts the list the slow way. It shares no code, not even the text of the
// rules, with what it judges.
//
// It also knows what a contract is worth: a Schedule is what a greedy scheduler
// gets from it, a lone one that knows everything and spends as soon as it may.
// Use compares a log with that, since granting nothing is safe too.
//
// Everything here is a pure function of its arguments and safe for concurrent
// use. Instants are Unix nanoseconds.
package oracle
