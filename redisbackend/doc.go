// Package redisbackend keeps the mirror and the seat of a coordinator in Redis.
//
// The model: each partition of a cell has one hash tag, so that a Cluster keeps it on
// one node, and under it
//
//	{ration:<cell>:<n>}:seat       who leads, and what time it is for the ledger
//	{ration:<cell>:<n>}:k:<key>    the record of a limited prefix, percent-encoded
//
// Both are hashes of text that redis-cli shows; package recordtext says what is in a
// record. Five scripts, and one that only looks, are all that touches them; another tries
// whether it may. Each of the five asks first whether its caller still leads, so that a
// leader that was paused or cut off can write nothing. They move bytes and fence, and
// compute no limit.
//
// The seat has no TTL. A record has one, as a broom: the leader deletes what has
// drained, and the TTL lies a day beyond the last instant at which the record can matter.
//
// Use: [Open] a [Server] by its URL, [Server.Check] that it can be trusted, and give
// [Server.Mirror] of each partition to a coordinator.
//
// Answers wait for replicas: after each turn, each campaign and each resignation WAIT is
// called for all that have been connected within the last minute, or as many as
// Config.Replicas says. One that has been promoted is no longer waited for.
//
// A record that cannot be read is given as damaged, and not as an error: one that somebody
// has spoilt does not hold up the others. Nor does a name that is none of a record: it is
// left alone, and the first is told of.
//
// Redis before version 5 is refused: scripts replicate what they do, not what
// they are.
package redisbackend
