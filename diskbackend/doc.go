// Package diskbackend keeps the copy of a ledger in a directory, for a lone
// coordinator: whatever ends its process, the next one knows every turn that was
// answered.
//
// [Mirror] is a lease.Mirror and a lease.Elector over one file, ration.db, of an
// embedded store. A turn is one transaction, with the seat and its number in it, so
// that a crash at any instant leaves whole turns. It writes the fields that have
// changed, as named text, and costs what they cost, however much else there is.
//
// # What can be lost
//
// A killed process loses nothing. Neither does a power cut, if the disk keeps what it
// says it has: each turn waits until it is on the disk, twice, for its pages and for
// the page that makes them count. That is the price of a turn: 2.8 ms on the machine
// of the measurements below. It is paid by turns, not by requests, since whatever
// comes while one is written goes into the next; and what holders spend from their
// leases asks nobody.
//
//	                            turns a second, of one prefix each
//	each on the disk (as it is)           SYNCED
//	left to the kernel                    UNSYNCED
//
// Leaving the pages to the kernel, and asking for the disk once a second, would not
// lose one second at a power cut: the kernel writes pages in an order of its own, the
// store uses those again that no turn needs any more, and it would come back without
// a tree. A copy of the ledger that may be gone is none, so there is no such setting.
//
// What is not a promise to anybody is not waited for: that the leader lives, and turns
// that changed nothing, are kept in memory and written with the next turn that did, at
// most a second later. Nor is it noticed when the file is replaced by an older copy of
// itself while nobody has it open: that forgets what was granted since.
//
// A file that is taken away or replaced under a leader is missed within a second: until
// it is made again, and all that the leader knows is in it, nothing more is granted.
//
// # One process
//
// The file is locked while it is open. Whoever opens it knows by that that no leader
// lives, whatever the seat says: it is vacant, and a coordinator that is started again
// leads at once.
//
// # Room
//
// The file has room for the most that was ever in it at once, and for a turn besides:
// room that comes free is used again, and not given back. Prefixes at rest go. What is
// left of others goes when ledger time has passed the instant to which it was to be
// kept; ledger time, since a wall clock that is set during a run may leap by years.
package diskbackend
