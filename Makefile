# Commands of the repository. `make` alone lists them.

SHELL       := bash
.SHELLFLAGS := -eo pipefail -c
GO          ?= go
TESTFLAGS   ?=
SEEDS       ?= 1000
FUZZTIME    ?= 20s
ROUNDS      ?= 2
PARTS       ?=
MUTANTFLAGS ?=
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help build run test nginx redis race sim mutants failover compose-test fuzz lint bench bench-peers proof clean

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1\t\2/p' Makefile | expand -t 18

build: ## build bin/coordinator, bin/worker and bin/strictupstream
	$(GO) build -o bin/ ./cmd/coordinator ./cmd/worker ./integration/upstream/cmd/strictupstream

run: build ## show a fleet of four workers keeping one contract (7 s)
	@$(GO) run ./integration/demo --bin bin

test: ## all tests, in their short form
	$(GO) test $(TESTFLAGS) ./...

nginx: ## install nginx, for the tests that play against it (Debian and its kin)
	@integration/install.sh nginx

redis: ## install redis-server, for the tests that play against it (Debian and its kin)
	@integration/install.sh redis-server

race: ## all tests under the race detector
	$(GO) test -race -timeout 30m $(TESTFLAGS) ./...

sim: ## play SEEDS=1000 worlds in which everything goes wrong that can
	$(GO) test ./integration/sim -count=1 -v -timeout 2h -run 'TestSimulation$$' -seeds $(SEEDS) | grep -v -e '--- PASS: TestSimulation/' -e '=== RUN'

mutants: ## lay each known fault over the sources; the tests must see it
	$(GO) run ./integration/mutants $(MUTANTFLAGS)

failover: redis ## let coordinators, Redis, NATS and workers fail in turn under full demand, ROUNDS=2 times
	RATION_ROUNDS=$(ROUNDS) $(GO) test ./integration/failover -count=1 -v -timeout 60m -run 'TestNoFailureBreaksTheContract$$'

compose-test: ## play docker-compose.yml on the Docker engine, if there is one
	@integration/compose/standins.sh
	RATION_COMPOSE=1 $(GO) test ./integration/compose -count=1 -v -timeout 60m $(TESTFLAGS)

fuzz: ## a round of FUZZTIME=20s for each fuzz target
	@grep -ro '^func Fuzz[A-Za-z0-9]*' --include='*_test.go' . | while IFS=: read -r file found; do \
		$(GO) test "$$(dirname "$$file")" -run '^$$' -fuzz "^$${found#func }$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x || exit 1; done

lint: ## gofmt, go vet and staticcheck
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "run gofmt on:"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	cd bench && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) test ./...

bench: ## measure the hot paths beside what they are compared with; installs redis-server (two minutes)
	@integration/install.sh redis-server
	cd bench && $(GO) run .

bench-peers: ## the same beside limiters that ask Redis each time; installs redis-server
	@integration/install.sh redis-server
	cd bench && $(GO) run ./peers

proof: ## everything that is claimed, at full length, with its figures (hours), or PARTS="failover nginx" of it
	@integration/proof.sh $(PARTS)

clean: ## remove what was built
	rm -rf bin
