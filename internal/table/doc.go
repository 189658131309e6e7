// Package table finds values by a key that they hold themselves, in as little
// room as that takes, and gives the room back when they go.
//
// A map of Go keeps each key beside its value, stands half empty on average, and
// never shrinks. Here a value takes its own size and four bytes, divided by a load
// of a half to four fifths once there are many. No call moves more than one of
// 256 parts, so that none takes long also where there are millions.
package table
