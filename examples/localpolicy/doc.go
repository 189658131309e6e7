// Command localpolicy keeps a rate contract within one process: no NATS, no
// coordinator. Twenty callers at once share a policy of two windows, and each
// says when its turn came.
//
// The same code limits a fleet once ration.Local is ration.Connect.
package main
