// Package worker is the holder's side of the lease: it spends locally what it
// was granted, and never later than it may.
//
// The law it keeps: each token of a lease is spent once, before the holder's own
// deadline, or returned once, or left to expire; the three never add up to more
// than was granted. A spend takes first and reads the clock after: past the
// deadline it is no spend. A return, once made, is gone, whatever became of the
// message. Under a pace rule one call at a time is taken, and no sooner than the gap
// of the last one is over. One grant is taken per id, and an id given up is given up
// for good.
//
// A [Pool] is what one holder has of one set of keys: a pure machine that is
// driven with the holder's elapsed time. A [Worker] is the shell around many
// pools that reads the clock, sends the messages and wakes the callers.
//
// A call may cost further units besides tokens. What it takes it takes at one
// instant, all or nothing, from whatever leases have it; each lease tells of its
// own part, at the same date.
//
// # Driving a Pool
//
// Whoever owns a pool calls it from one goroutine, or under one lock, with the
// elapsed time as it is then, and after each call looks at what came of it:
//
//	c := pool.Ask(now, cost, slot, until, units...)  // Taken, Waiting or Failed
//	pool.Spend(later, c)                   // Taken -> Running; false: Taken anew, Waiting or Failed
//	pool.Finish / Abandon / Cancel(now, c); pool.Settle(now, c, used, units...)
//	pool.Allow(now, n, units...)           // local only, without a slot
//	c = pool.Try(now, n, units...)         // as Allow, but Spend and Finish it; nil: not at hand
//
//	pool.Served()              // calls decided meanwhile: Taken (Spend them), Failed, Lost
//	pool.Requests(now)         // copies to send at this instant: their Sent is now
//	pool.Answered(now, sent, answer)  // sent: the Sent of the copy it answers
//	pool.Failed(now, sent, id, err)   // no answer to that copy
//	pool.Recalled(now, recall)
//
//	pool.Next()                // when Tick has something to do
//	pool.Tick(now)             // then look at Served and Requests again
//	pool.Due()                 // when a report is wanted; every heartbeat one of all leases
//	pool.Report(now, heartbeat)       // counts and ids given up, for a report with Sent = now
//	pool.Replied(now, report, reply), pool.Unreported(now, report)
//
//	pool.Restart(now)          // the holder takes a new incarnation (ids have to give new ids)
//	pool.Close(now)            // then Report(now, true) is the goodbye
//	pool.Books()               // granted = spent + returned + expired + held
//
// Next and Due only move when the pool is called, so read them after each call.
// An owner that drives Allow from its one goroutine calls Look before it reads
// the instant of a Tick or Report.
package worker
