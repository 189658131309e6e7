// Package integration holds the layering of the module: who may import whom,
// and that every package says what it is. It has tests only. The folders below
// it judge the product from outside: the oracle and the strict upstream, which
// share no code with it, and the harness, which runs its binaries.
package integration
