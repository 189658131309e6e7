// Package nginx tests a fleet against an upstream that nobody here wrote: nginx,
// which counts by limits of its own and refuses what is over them. It has tests
// only.
//
// The law: a fleet that keeps the rules that docs/rules.md gives for a limit of
// nginx is not refused by it. The tests read those rules from the page, so that
// what the page says is what was played.
//
// Four workers share a contract, each with a connection to the coordinator and
// warm connections to nginx of its own. Nginx runs from a folder of the test, on
// the loopback, without root. How many calls it refused is told by the callers
// and by its log, which also shows that each call arrived once, and how late.
// Four workers that do not share are refused, so the tests can fail.
//
// A machine without nginx skips the tests, except under CI=true or RATION_PROOF=1,
// where that fails them; install.sh installs it. RATION_PROOF=1 plays all at full
// length, -short plays little, and -v prints the figures.
package nginx
