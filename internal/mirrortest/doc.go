// Package mirrortest holds every mirror to the same conduct: whatever keeps the copy
// of a ledger, it fences, numbers, changes and gives back alike.
package mirrortest
