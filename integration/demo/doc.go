// Command demo shows a fleet under one contract: a coordinator with its NATS
// server, a strict upstream that counts every call, and four workers that make
// 30 calls together, as fast as the contract allows. It then says who was
// granted what, how long it took beside the best that any scheduler can do, and
// what the upstream has to complain of. It exits with 1 if that is anything.
//
// It runs the binaries coordinator, worker and strictupstream of the folder
// given with --bin.
package main
