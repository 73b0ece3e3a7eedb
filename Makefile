# What a developer runs. `make` alone lists it. Each target works from a fresh
# clone with Go, git and make; `make setup` gets the one thing that is missing,
# servers to test against.

GO       ?= go
COUNT    ?= 20
FUZZTIME ?= 10s
COMPAT   ?= 3.17.7 3.52.0 4.3.1
WAKEUPS  ?= 100
RELEASES ?= 3.17.7 3.20.1 3.24.3 3.28.0 3.37.0 3.45.1 3.52.0 4.0.0 4.3.1 4.7.0
MUTANTS  ?=
WITH     ?=
CHANGED  ?=
LIMIT    ?= 0
HOURS    ?= 400
TRIALS   ?= 200
JOBS     ?=

FAKE     ?= 100
REST     ?= 20

# Only test and test-short leave tests out: see internal/test/testlevel.
export REDLATCH_TEST := all

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
FLEETS   ?= 0

.PHONY: adapters arrows executor fences itest failover bench loss bench-quick bench-check stress stress-check help setup test test-all test-short flaky compat vectors mutants model lint check build cross demo deps newcomer overload vuln fuzz trials soak clean

help: ## day | 1 s | List the targets
	@echo "Rough durations on two idle cores. docs/testing.md says more."
	@for group in "day:every day" "change:before a change is proposed (.ci/run does most of it)" "measure:measuring, and rarely"; do \
		printf '\n%s\n' "$${group#*:}"; \
		awk -F ' ## ' -v group="$${group%%:*}" '/^[a-z-]+:.* ## / { split($$2, says, " [|] "); sub(/:.*/, "", $$1); \
			if (says[1] == group) printf "  %-13s %-11s %s\n", $$1, says[2], says[3] }' $(MAKEFILE_LIST); \
	done

setup: ## day | 1 min once | Get a redis-server and a valkey-server to test against
	@scripts/redis-server.sh setup

test: setup ## day | 3 min | The tests, race detector, real server; lists at its end what is left to test-all
	cd test/stress && $(GO) test -race -vet=off -count=1 -timeout 5m ./fleet -fleets 5
	$(GO) run ./test/testrun ./...

test-all: setup ## change | 15 min | All tests: also Java machines, clusters, load, long leases, many rounds
	cd test/stress && $(GO) test -race -vet=off -count=1 -timeout 5m ./fleet
	$(GO) run ./test/testrun -all ./...

test-short: export REDLATCH_TEST =
test-short: ## day | 2 min | Only the tests that need no server
	$(GO) test -short -timeout 5m ./...

# The tests that can fail by chance, until they do: on fake time 100 rounds, the rest 20.
flaky: LIMIT = 90m
flaky: setup ## measure | 70 min | The tests of `make test` again and again, under processor load, until LIMIT
	$(GO) run ./test/flaky -fake $(FAKE) -rest $(REST) -limit $(LIMIT)

# Without the race detector, with which make test-all does it: some of it is left out with that.
compat: setup ## change | 3 min each | Compare with Redisson itself, releases COMPAT (JDK 17, Maven)
	scripts/compat.sh $(COMPAT)
	REDLATCH_COMPAT=1 REDLATCH_COMPAT_VERSIONS="$(COMPAT)" \
		$(GO) test -v -timeout 90m -run 'TestRedissonAndRedlatchShareLocks' .

.PHONY: mixed mixed-check

# One test at a time: what is measured wants the machine for itself.
mixed: setup ## measure | 30 min | Redlatch beside Redisson, releases COMPAT, in clusters: WAKEUPS (100) for any two
	scripts/compat.sh $(COMPAT)
	cd test/containers && REDLATCH_COMPAT=1 REDLATCH_COMPAT_VERSIONS="$(COMPAT)" REDLATCH_WAKEUPS=$(WAKEUPS) \
		$(GO) test -count=1 -v -parallel 1 -timeout 60m ./mixed

mixed-check: setup ## change | 1 min | Redlatch beside the newest Redisson in a cluster, in short
	cd test/containers && $(GO) test -race -count=1 -timeout 5m ./mixed

vectors: setup ## measure | 1 min | Record what live Redissons do, releases RELEASES, in test/compat/testdata
	scripts/compat.sh $(RELEASES)
	REDLATCH_COMPAT=1 REDLATCH_VECTORS=write REDLATCH_COMPAT_VERSIONS="$(RELEASES)" \
		$(GO) test -count=1 -timeout 20m -run 'TestRedissonAndRedlatchShareLocks/^[0-9.]+$$/^scripts$$/^server$$/^recorded$$' .

mutants: setup ## change | 2 h all | Plant bugs, which tests must notice (MUTANTS=regexp, CHANGED=revision, LIMIT=8m, JOBS=4)
	$(GO) run ./test/mutants -run '$(MUTANTS)' -changed '$(CHANGED)' -limit $(LIMIT) $(if $(JOBS),-j $(JOBS))

.PHONY: mutate
mutate: setup ## change | 3 s each | Change what differs from BASE, bit by bit, and list what no test notices (WITH=rlock,rfairlock, LIMIT=8m)
	$(GO) run ./test/mutants -generate '$(BASE)' -with '$(WITH)' -run '$(MUTANTS)' -limit $(LIMIT) $(if $(JOBS),-j $(JOBS))

arrows: ## change | 5 s | Imports that point upwards; fails above one
	$(GO) run scripts/arrows.go

model: ## measure | 5 min | Simulate fleets that share a fair lock for HOURS (400), and print the table of docs/fair-lock.md
	$(GO) run ./test/simulation -hours $(HOURS)

bench: setup ## measure | 55 min | Measure against other clients: ROUNDS (5), SCALE (1), WHAT (regexp), OUT (docs/performance)
	cd bench && $(GO) build -o ../bin/bench .
	java=$$(scripts/bench-java.sh) && bin/bench run -rounds $(ROUNDS) -scale $(SCALE) -what '$(WHAT)' -out '$(OUT)' -java "$$java"

.PHONY: bench-profiles
bench-profiles: setup ## measure | 10 min | What takes the processor time of each client, as texts in docs/performance/profiles
	scripts/bench-profiles.sh docs/performance/profiles

bench-quick: setup ## measure | 2 min | Compare the working tree with git revision BASE (HEAD)
	scripts/bench-quick.sh '$(BASE)'

bench-observed: setup ## measure | 6 min | Compare a program that both modules for metrics observe with one without
	scripts/bench-observed.sh

executor: setup ## measure | 10 min | Callers that do their own I/O, through cancels, kills, pauses and Close, for DURATION
	REDLATCH_EXECUTOR=$(DURATION) $(GO) test -race -count=1 -v -timeout 0 -run '^TestCallersThatReadGetTheirOwnReplies$$' ./internal/mux

loss: setup ## measure | 8 min | When holders of a lost lock are told, beside other clients, into docs/reliability (NOTE)
	cd bench && $(GO) build -o ../bin/bench .
	bin/bench loss -note '$(NOTE)'

bench-check: setup ## change | 2 min | Vet, lint and test the benchmark
	scripts/bench-check.sh

overload: setup ## measure | 1 min | Load one client far beyond reason, and print how it bears that
	REDLATCH_OVERLOAD=full $(GO) test -count=1 -v -timeout 30m ./test/overload

vuln: ## change | 1 min | Known vulnerabilities in what is used (needs the internet)
	$(GO) tool -modfile=tools/go.mod govulncheck ./...
	cd bench && $(GO) tool -modfile=../tools/go.mod govulncheck ./...

# Without a bound of its own: each of its steps has one.
stress: setup ## measure | DURATION | Break servers, networks and processes (10m), and judge what clients saw (SEED; REPORTS: a file to add to)
	cd test/stress && $(GO) test -race -count=1 -v -timeout 0 -run '^TestStress$$' . -duration $(DURATION) -seed $(SEED) -reports '$(abspath $(REPORTS))'

.PHONY: stress-rw
stress-rw: setup ## measure | DURATION | Readers and writers of Redlatch and of two live Redissons, with faults (10m, SEED)
	scripts/compat.sh 4.3.1 4.7.0
	cd test/stress && $(GO) test -race -count=1 -v -timeout 0 -run '^TestReadWriteStress$$' . -duration $(DURATION) -seed $(SEED)

.PHONY: stress-permits
stress-permits: setup ## measure | DURATION | Permits of semaphores, then beside two live Redissons, with all faults (10m, SEED)
	scripts/compat.sh 4.3.1 4.7.0
	cd test/stress && $(GO) test -race -count=1 -v -timeout 0 -run '^TestPermitStress$$' . -duration $(DURATION) -seed $(SEED)

.PHONY: permit-trials
permit-trials: TRIALS = 50
permit-trials: setup ## measure | 1 min | Kill TRIALS (50) holders of permits beside a live Redisson: each permit is back in time
	scripts/compat.sh 4.3.1
	cd test/stress && $(GO) test -count=1 -v -timeout 0 -run '^TestPermitsOfAKilledHolder' . -trials $(TRIALS)

.PHONY: fleet
fleet: ## measure | DURATION | Fleets of clients on fake time, with faults, from random seeds (SEED; FLEETS: so many instead of DURATION)
	cd test/stress && $(GO) test -count=1 -v -timeout 0 -run '^TestFleets$$' ./fleet -seed $(SEED) \
		$(if $(filter-out 0,$(FLEETS)),-fleets $(FLEETS),-duration $(DURATION))

adapters: setup ## change | 5 min | Vet, lint and test the adapters of go-redis and rueidis (RUN: some)
	RUN="$(RUN)" scripts/adapters-check.sh
	scripts/adapters-core.sh

.PHONY: observers bench-observed
observers: setup ## change | 1 min | Vet, lint and test the modules for Prometheus and OpenTelemetry (RUN: some)
	RUN="$(RUN)" scripts/observers-check.sh

# One adapter after the other, and one failure after the other: they are timed.
failover: setup ## measure | 10 min | Replace masters in every way, and print the table of docs/topologies.md
	for a in goredis rueidis; do \
		(cd adapter/$$a && REDLATCH_FAILOVER=full $(GO) test -count=1 -v -timeout 20m -run '^TestFailoverTable$$' .) || exit 1; \
	done

itest: setup ## change | 3 min | The suites for every server, in containers where Docker is (RUN: some)
	RUN="$(RUN)" scripts/itest-check.sh

stress-check: ## change | 2 min | Vet, lint and test the checker of the nemesis run
	scripts/module-check.sh test/stress
	cd test/stress && $(GO) test -race -short -count=1 -timeout 2m ./...

.PHONY: campaigns
campaigns: setup ## change | 3 min | Small nemesis runs, each with the faults and habits that show one kind of bug
	cd test/stress && $(GO) test -race -vet=off -count=1 -timeout 10m -skip '^Test(ReadWrite|Permit)?Stress$$' .

.PHONY: gocron
gocron: setup ## change | 5 min | Vet, lint and test the module for gocron, with 200 kills and 200 stalls (RUN: some)
	scripts/module-check.sh gocronredlatch
	cd gocronredlatch && $(GO) test -race -count=1 -timeout 15m -run '$(or $(RUN),.)' ./...

.PHONY: libraries
libraries: setup ## change | 1 min | Vet, lint and test the examples for asynq, cron, certmagic and goose
	scripts/module-check.sh examples/libraries
	cd examples/libraries && $(GO) test -race -count=1 -timeout 5m ./...

.PHONY: release release-check api
release: ## measure | 2 min | Look whether VERSION may be released; write, commit and tag it (DRY=1: only look)
	$(GO) run -C scripts/release . $(if $(DRY),-dry-run) '$(VERSION)'

# Its walk installs and uses the tree as a stranger does who has its tags alone.
release-check: setup ## change | 2 min | Vet, lint and test the release program; install a trial release outside of the checkout
	scripts/module-check.sh scripts/release
	cd scripts/release && $(GO) test -count=1 -timeout 8m ./...

api: ## change | 1 min | What the API of all modules has lost and got since the last tag (SINCE: another revision)
	$(GO) run -C scripts/release . -api -since '$(SINCE)'

.PHONY: package-check
package-check: setup ## change | 1 min | Build archives and packages twice, install the Debian one, and do docs/quickstart.md with it (TARGETS=all)
	scripts/package-check.sh $(TARGETS)

.PHONY: browser ui-picture
browser: setup ## change | 1 min | Vet, lint and try the live page in a browser (Debian's chromium)
	scripts/chromium.sh
	scripts/module-check.sh test/browser
	cd test/browser && $(GO) test -vet=off -count=1 -parallel 4 -timeout 5m ./...

ui-picture: setup ## measure | 1 min | Take the picture of the live page for docs/ui.md
	scripts/chromium.sh
	cd test/browser && REDLATCH_PICTURE=$(CURDIR)/docs/ui.png $(GO) test -count=1 -run PageAlone .

fences: setup ## change | 2 min | Vet, lint and test the guards of package fence on SQLite, PostgreSQL and MariaDB
	scripts/fence-check.sh

.PHONY: observability dashboard-picture
observability: setup ## change | 1 min | Check the dashboard and the alerts of deploy with Prometheus, and walk through docs/observability.md (RUN: some)
	RUN="$(RUN)" scripts/observability-check.sh

dashboard-picture: setup ## measure | 1 min | Draw the panels of the dashboard from a run, for docs/observability.md
	scripts/prometheus.sh >/dev/null
	cd test/observability && REDLATCH_PICTURE=$(CURDIR)/docs/observability/dashboard.svg $(GO) test -count=1 -run NoPanel .
	chmod 644 docs/observability/dashboard.svg

lint: check ## day | 20 s | All of check, and the linters (3 min the first time)
	$(GO) vet ./...
	$(GOLANGCI) run --allow-serial-runners ./...

# The checks that take no time, before those that do.
check: ## day | 5 s | Formatting, words, sizes, imports
	scripts/check-fmt.sh
	scripts/check-words.sh
	$(GO) run scripts/sizes.go
	$(GO) run scripts/arrows.go

build: ## day | 1 min | Build everything, and the command line into bin/
	$(GO) build ./...
	$(GO) build -o bin/ ./cmd/...

# vet compiles the tests too, which build does not.
cross: ## change | 3 min | Build and vet for macOS and Windows
	GOOS=darwin $(GO) build ./...
	GOOS=darwin $(GO) vet ./...
	GOOS=windows $(GO) build ./...
	GOOS=windows $(GO) vet ./...

demo: ## day | 10 s | Four processes and one lock, on a server inside the program
	$(GO) run ./cmd/redlatch demo

deps: ## change | 20 s | What a user's module gets: packages, modules, lines of go.sum
	scripts/user-deps.sh

newcomer: setup ## change | 1 min | Do what README and docs/quickstart.md say, in an empty folder (JDK 17, Maven)
	scripts/newcomer.sh

fuzz: ## change | 2 min | Each fuzz target for FUZZTIME (10s)
	FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

trials: setup ## measure | 10 min | What must never fail about redlatch run, TRIALS (200) times
	REDLATCH_TRIALS=$(TRIALS) $(GO) test -race -count=1 -timeout 60m -v \
		-run '^(TestServerThatFreezesCostsTheCommandItsLifeBeforeTheKeyExpires|TestKillingRedlatchKillsTheCommandAndItsChildren)$$' \
		./cmd/redlatch/run

soak: setup ## measure | 4 h | All tests COUNT (20) times with the race detector
	for i in $$(seq $(COUNT)); do \
		echo "run $$i of $(COUNT)"; $(GO) run ./test/testrun -all ./... || exit 1; \
	done

clean: ## measure | 1 s | Remove what the other targets made here
	rm -rf bin dist internal/test/peer/java/target bench/java/target
	$(GO) clean -testcache
