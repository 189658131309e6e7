// Command worker makes calls at the pace that a fleet's rate limits allow. It
// leases tokens from a coordinator, spends them here, and gives back what it
// does not use.
//
//	worker exec --key K [-j N] -- CMD {}   run a command for each line of input
//	worker load --key K [--get URL]        make demand, for trying things out
//	worker version
//
// # Exec
//
// Exec is xargs for a fleet: it reads lines from stdin and runs CMD once for
// each, with {} replaced by the line in every argument, or with the line as the
// last argument if there is no {}. Blank lines are skipped. It waits for a token
// before each run, and for a slot if the contract has a concurrency rule, which
// comes back when the command exits. Workers on other machines that are given
// other parts of a list share the limit.
//
//	worker exec --key openai/chat -j 4 --log run.jsonl -- ./ask.sh {} < questions
//
// A command that fails is counted and the run goes on; the exit code is then 1
// at the end. A command that cannot be started costs no token. Output is passed
// on in whole lines. With --wait an item that got no turn in time is not run and
// counted. A refusal that no waiting changes ends the run.
//
// Commands run in process groups of their own, with an empty stdin. They are
// killed, with what they started in their group, when the worker dies, even by
// kill -9; a second process, the warden, sees to that, by the variable
// RATION_EXEC_RUN that they find in their environment. They are asked to end, and
// killed two seconds later, when the lease of their slot is lost, since somebody
// else may have it by then.
//
// The first SIGTERM or SIGINT takes no new lines and waits for what runs; the
// second kills it. What was read and not run is named, and where the input was
// left. After SIGTERM the exit code is 143 if anything was left, so that
// `worker exec … && mark-done` loses nothing; after SIGINT it is 130.
//
// Where calls cost something else as well, --unit says how much: with
// --unit tokens=1200 each line takes 1,200 of a rule such as 200000/1m unit=tokens.
//
// Where one key does not say what limits a call, --key may be given several times, for
// up to 8 keys with the same first segment: each line takes of all of them at once, or
// of none.
//
//	worker exec --key acme/user/7 --key acme/route/search -- ./search.sh {} < queries
//
// # Load
//
// Load calls as often as it may: -j callers, each waiting for its turn, with
// --get also calling a URL. --rate paces the demand. Without --for and --count
// it goes on until it is interrupted.
//
//	worker load --key demo --get http://127.0.0.1:8080/ --for 10s
//
// One token is one attempt on the wire: load uses each connection once and
// follows no redirect, since an HTTP client that resends spends again. Stdout
// has a line for each status and how often it came.
//
// # Log
//
// With --log both append a line of JSON for each call that was sent, in one
// write, so that several may share a file. It is written when the call has ended:
// a worker that is killed leaves no trace of what was under way. A line has item
// and exit (exec only), key, more (the others of several keys), cost, units (if there
// are any besides calls), sent
// and done. Sent is the very instant at which the spend is dated, in nanoseconds
// since 1970, by a clock that does not step while the process runs.
//
// # Environment
//
// Every flag can be given as a variable, RATION_ and its name in capitals, such
// as RATION_KEY. The NATS ones can also be given as the nats command spells
// them: NATS_URL, NATS_CREDS, NATS_USER, NATS_PASSWORD, NATS_TOKEN, NATS_NKEY,
// NATS_CERT, NATS_KEY, NATS_CA. A flag is stronger than a variable.
//
// # Exit codes
//
//	0    done
//	1    failed: a command, a call, a bad file
//	2    misused: a flag or argument makes no sense
//	3    refused: the policy never grants this
//	4    nothing failed, but the wait for some turn was over
//	5    no coordinator, or no NATS server, answered within --connect-wait; later
//	     on calls wait for one
//	129  ended by SIGHUP
//	130  ended by SIGINT
//	143  ended by SIGTERM before all was done, or by a second one
package main
