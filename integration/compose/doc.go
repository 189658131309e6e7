// Package compose plays docker-compose.yml as users do, on a real Docker engine: the
// leading coordinator is killed, cut off the network and paused, workers come and go,
// and the strict upstream must not see a single call that breaks the contract.
//
// It plays only where RATION_COMPOSE=1 says so, as it takes minutes. Then everything
// that is missing fails it, but for the engine itself. standins.sh builds the images
// that cannot be pulled.
package compose
