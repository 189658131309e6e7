// Package cli is how Ration's commands talk to people and to scripts.
//
// The law: stdout is the result, stderr is for people, and the exit code says
// which of six things happened: done, failed, misused, refused, timed out, no
// coordinator. An error says what is wrong, where, and what to do.
//
// The model: a command is a function of its arguments, its [Streams] and a
// context; nothing in it asks the process for them. [Parse] reads flags, then
// the environment, then defaults. [Catch] turns the first signal into the end of
// one context and the second into the end of another, so that a command can
// drain on the first and stop on the second.
package cli
