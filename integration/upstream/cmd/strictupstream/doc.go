// Command strictupstream serves a strict upstream: it holds its callers to a
// contract, answers 429 when they break it, and tells at /report what it saw.
//
//	strictupstream --contract '5/1s, 12/3s' --contract '/search=4 concurrent' --delay 20ms
//
// On SIGINT or SIGTERM it ends and writes the report to its standard output.
package main
