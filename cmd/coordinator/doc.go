// Command coordinator owns the true state of every window of a fleet's rate
// limits, and leases tokens of them to workers over NATS.
//
//	coordinator [serve]      lead; it brings a NATS server with it unless --nats or NATS_URL names one
//	coordinator check FILE   say what a policy means, and what it costs
//	coordinator status [KEY] show windows, holders and the line
//	coordinator pause KEY    grant nothing of a key and of what lies below it; resume KEY ends that
//	coordinator reset KEY    forget what was spent there and below; --clock takes the wall clock for calendar time, at once
//	coordinator charge KEY N count what was used elsewhere as spent
//	coordinator healthcheck  exit 0 if a coordinator on this machine is ready
//	coordinator version
//
// # Serve
//
// Without flags it takes the policy from ./ration.yaml, or a built-in demo
// policy if there is no such file, listens for NATS clients on 127.0.0.1:4222
// and for HTTP on 127.0.0.1:8422 or the next free port. Its state is in memory:
// a restart forgets what was spent.
//
// Start one for each cell. One that joins a NATS system asks first whether
// somebody leads its cell there, and if so does not start. With --redis any
// number stand by, and --partitions divides the cell by tenant among them.
//
// HTTP has /healthz (the process lives, and takes turns or waits for its mirror),
// /readyz (it is connected to NATS, and leads or, while Redis answers it, stands
// by; the body says what is missing) and /metrics for Prometheus. No metric has a
// key in its labels.
//
// SIGTERM and SIGINT drain: it takes no more requests, answers what has arrived
// and exits with 0. A second signal ends it at once, with 143 or 130.
//
// # Environment
//
// Every flag can be given as a variable, RATION_ and its name in capitals, such
// as RATION_POLICY. The NATS ones can also be given as the nats command spells
// them: NATS_URL, NATS_CREDS, NATS_USER, NATS_PASSWORD, NATS_TOKEN, NATS_NKEY,
// NATS_CERT, NATS_KEY, NATS_CA. A flag is stronger than a variable.
//
// # Exit codes
//
//	0    done
//	1    failed: a bad file, a port in use, another leader, not ready
//	2    misused: a flag or argument makes no sense
//	5    no coordinator, or no NATS server, answered within --connect-wait
//	129  ended by SIGHUP before NATS answered, or by a second one
//	130  the same of SIGINT
//	143  the same of SIGTERM
package main
