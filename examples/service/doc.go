// Command service answers HTTP requests by calling an upstream that limits how
// often it may be called. However many copies of it run, on however many
// machines, together they keep the upstream's contract.
//
//	coordinator --policy examples/service/ration.yaml
//	service --upstream http://127.0.0.1:8080/ --listen 127.0.0.1:8000
//
// A request has five seconds, for its turn and for the call; a caller that leaves
// earlier is taken out of the line. NATS_URL says where NATS is, nats://127.0.0.1:4222
// unless given.
package main
