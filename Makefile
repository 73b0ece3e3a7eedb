# What a developer runs. `make` alone lists it. Each target works from a fresh
# clone with Go, git and make; `make setup` gets the one thing that is missing,
# servers to test against.

GO       ?= go
COUNT    ?= 20
FUZZTIME ?= 10s
COMPAT   ?= 3.17.7 3.52.0 4.3.1
WAKEUPS  ?= 100
RELEASES ?= 3.17.7 3.20.1 3.24.3 3.28.0 3.37.0 3.45.1 3.52.0 4.0.0 4.3.1
MUTANTS  ?=
CHANGED  ?=
LIMIT    ?= 0
HOURS    ?= 400
TRIALS   ?= 200
JOBS     ?=

# Pinned in a module of its own: its dependencies stay out of users' go.sum.
GOLANGCI := $(GO) tool -modfile=tools/go.mod golangci-lint

.DEFAULT_GOAL := help

ROUNDS   ?= 5
SCALE    ?= 1
WHAT     ?=
BASE     ?= HEAD
OUT      ?= docs/performance
NOTE     ?=
DURATION ?= 10m
SEED     ?= 0

.PHONY: adapters arrows seam itest failover bench loss bench-quick bench-check stress stress-check help setup test test-short compat vectors mutants model lint check build cross demo deps newcomer overload vuln fuzz trials soak clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make sure there are a redis-server and a valkey-server to test against (gets them if it can)
	@scripts/redis-server.sh setup

test: setup ## All tests with the race detector, against a real server
	$(GO) test -race -count=1 -timeout 15m ./...

test-short: ## Only the tests that need no Redis server
	$(GO) test -short -timeout 5m ./...

compat: setup ## Compare with Redisson itself, releases COMPAT (needs JDK 17 and Maven)
	scripts/compat.sh $(COMPAT)
	REDLATCH_COMPAT=1 REDLATCH_COMPAT_VERSIONS="$(COMPAT)" \
		$(GO) test -race -v -timeout 20m -run 'TestRedissonAndRedlatchShareLocks' .

.PHONY: mixed mixed-check

# One test at a time: what is measured wants the machine for itself.
mixed: setup ## Redlatch beside Redisson, releases COMPAT, in clusters: WAKEUPS (100) for any two (needs JDK 17 and Maven)
	scripts/compat.sh $(COMPAT)
	cd test/containers && REDLATCH_COMPAT=1 REDLATCH_COMPAT_VERSIONS="$(COMPAT)" REDLATCH_WAKEUPS=$(WAKEUPS) \
		$(GO) test -count=1 -v -parallel 1 -timeout 60m ./mixed

mixed-check: setup ## The same in short, with the newest Redisson that scripts/compat.sh has built
	cd test/containers && $(GO) test -race -count=1 -timeout 5m ./mixed

vectors: setup ## Record what live Redissons do, releases RELEASES, in test/compat/testdata
	scripts/compat.sh $(RELEASES)
	REDLATCH_COMPAT=1 REDLATCH_VECTORS=write REDLATCH_COMPAT_VERSIONS="$(RELEASES)" \
		$(GO) test -count=1 -timeout 20m -run 'TestRedissonAndRedlatchShareLocks/^[0-9.]+$$/^scripts$$/^server$$/^recorded$$' .

mutants: setup ## Plant bugs one by one, each of which tests must notice (MUTANTS=regexp: some; CHANGED=revision: those of changed files; LIMIT=8m)
	$(GO) run ./test/mutants -run '$(MUTANTS)' -changed '$(CHANGED)' -limit $(LIMIT) $(if $(JOBS),-j $(JOBS))

arrows: ## Print the imports that point upwards, and fail when there are more than two
	$(GO) run scripts/arrows.go

seam: ## Measure the seam: how much must be known to change or add a kind of lock
	$(GO) run ./scripts/seam

model: ## Simulate fleets that share a fair lock for HOURS (400) of their time, and print what came of it
	$(GO) run ./test/simulation -hours $(HOURS)

bench: setup ## Measure against other lock clients, ROUNDS (5) rounds of SCALE (1) times the usual length, cases WHAT (a regexp), into OUT (docs/performance)
	cd bench && $(GO) build -o ../bin/bench .
	java=$$(scripts/bench-java.sh) && bin/bench run -rounds $(ROUNDS) -scale $(SCALE) -what '$(WHAT)' -out '$(OUT)' -java "$$java"

bench-quick: setup ## Compare the working tree with git revision BASE (HEAD), in two minutes
	scripts/bench-quick.sh '$(BASE)'

loss: setup ## Measure when holders of a lost lock are told, beside other clients, into docs/reliability; NOTE says what else the machine does
	cd bench && $(GO) build -o ../bin/bench .
	bin/bench loss -note '$(NOTE)'

bench-check: setup ## Vet, lint and test the benchmark itself
	scripts/bench-check.sh

overload: setup ## Load one client far beyond reason, and print how it bears that
	REDLATCH_OVERLOAD=full $(GO) test -count=1 -v -timeout 30m ./test/overload

vuln: ## Look for known vulnerabilities in what is used (needs the internet: a database of them)
	$(GO) tool -modfile=tools/go.mod govulncheck ./...
	cd bench && $(GO) tool -modfile=../tools/go.mod govulncheck ./...

# Without a bound of its own: each of its steps has one.
stress: setup ## Break servers, networks and processes for DURATION (10m) and judge what their clients saw (SEED: repeat a schedule)
	cd test/stress && $(GO) test -race -count=1 -v -timeout 0 -run '^TestStress$$' . -duration $(DURATION) -seed $(SEED)

adapters: setup ## Vet, lint and test the adapters of go-redis and rueidis, and build them with the core of the commit before (RUN: some tests)
	RUN="$(RUN)" scripts/adapters-check.sh
	scripts/adapters-core.sh

# One adapter after the other, and one failure after the other: they are timed.
failover: setup ## Replace masters under locks in every way, with each adapter, and print the table of docs/topologies.md (ten quiet minutes)
	for a in goredis rueidis; do \
		(cd adapter/$$a && REDLATCH_FAILOVER=full $(GO) test -count=1 -v -timeout 20m -run '^TestFailoverTable$$' .) || exit 1; \
	done

itest: setup ## The suites for every server, in containers where Docker is, else on what is installed (RUN: some)
	RUN="$(RUN)" scripts/itest-check.sh

stress-check: ## Vet, lint and test the nemesis run's checker itself
	scripts/module-check.sh test/stress
	cd test/stress && $(GO) test -race -short -count=1 -timeout 2m ./...

lint: check ## Linters, formatting, sizes, words
	$(GO) vet ./...
	$(GOLANGCI) run --allow-serial-runners ./...

# The checks that take no time, before those that do.
check:
	scripts/check-fmt.sh
	scripts/check-words.sh
	$(GO) run scripts/sizes.go
	$(GO) run scripts/arrows.go
	$(GO) run ./scripts/translation

build: ## Build everything, and the command line into bin/
	$(GO) build ./...
	$(GO) build -o bin/ ./cmd/...

# vet compiles the tests too, which build does not.
cross: ## Build and vet for macOS and Windows
	GOOS=darwin $(GO) build ./...
	GOOS=darwin $(GO) vet ./...
	GOOS=windows $(GO) build ./...
	GOOS=windows $(GO) vet ./...

demo: ## Four processes and one lock, on a server inside the program
	$(GO) run ./cmd/redlatch demo

deps: ## What a user's module gets: packages, modules, lines of go.sum
	scripts/user-deps.sh

newcomer: setup ## Do what the README and docs/quickstart.md say, in an empty folder (needs JDK 17 and Maven)
	scripts/newcomer.sh

fuzz: ## Each fuzz target for FUZZTIME (10s)
	FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

trials: setup ## What must never fail about redlatch run, TRIALS (200) times
	REDLATCH_TRIALS=$(TRIALS) $(GO) test -race -count=1 -timeout 60m -v \
		-run '^(TestServerThatFreezesCostsTheCommandItsLifeBeforeTheKeyExpires|TestKillingRedlatchKillsTheCommandAndItsChildren)$$' \
		./cmd/redlatch/run

soak: setup ## All tests COUNT (20) times with the race detector
	for i in $$(seq $(COUNT)); do \
		echo "run $$i of $(COUNT)"; $(GO) test -race -count=1 -timeout 15m ./... || exit 1; \
	done

clean: ## Remove what the other targets made here
	rm -rf bin internal/test/peer/java/target bench/java/target
	$(GO) clean -testcache
