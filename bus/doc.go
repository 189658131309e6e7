// Package bus carries lease.Lessor over NATS request-reply.
//
// The law it keeps: a message is answered by the answer to that very copy, or
// by an error, or not at all, and nothing is sent later than it was asked to
// be. So whoever asks can count every duration in an answer from the instant
// of sending, and a request that failed here is never granted behind the back
// of its caller.
//
// Three things follow from it. A connection of Connect has no reconnect
// buffer: what cannot be sent now fails now. Serve subscribes only while there
// is a lessor to serve, without a queue group, so that NATS itself answers "no
// responders" in its place and no frozen member swallows a request. And a
// message says all that it needs: format number, keys, and its sending on the
// holder's own clock.
//
// Subjects are ration.v1.<cell>.p.<partition>.<verb>.<tenant>; messages are
// JSON with a format number. docs/protocol.md has the whole protocol, enough
// to write a client in another language.
//
// # Use
//
// A coordinator embeds a server (Embed) or joins one (Connect) and runs Serve
// for as long as it leads. A holder connects (Connect) and uses NewClient as
// its lessor.
package bus
