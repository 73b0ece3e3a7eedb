# Commands for developers; `make` lists them. Each target works in a fresh clone with
# Go, git and make. `make setup` installs the servers that tests need.

GO       ?= go
FUZZTIME ?= 10s
COMPAT   ?= 3.17.7 3.52.0 4.3.1
WAKEUPS  ?=
RELEASES ?= 3.17.7 3.20.1 3.24.3 3.28.0 3.37.0 3.45.1 3.52.0 4.0.0 4.3.1 4.7.0
MUTANTS  ?=
CHANGED  ?=
LIMIT    ?= 0
MODULES  ?=
RUN      ?=

# Only test skips tests: see internal/test/testlevel.
export REDLATCH_TEST := all

# Pinned in a separate module, to keep its dependencies out of users' go.sum.
GOLANGCI := $(GO) tool -modfile=tools/go.mod golangci-lint

.DEFAULT_GOAL := help

RUNS     ?= 1
ROUNDS   ?= 3
SCALE    ?= 1
WHAT     ?=
BASE     ?= HEAD
OUT      ?= docs/performance
NOTE     ?=
DURATION ?= 10m
SEED     ?= 0
FLEETS   ?= 0

.PHONY: help setup test test-all lint check build demo cross modules vulncheck api package-check fuzz mutants mutate compat vectors mixed model stress fleet failover bench bench-quick loss pictures site release clean

help: ## day | 1 s | List the targets
	@echo "Rough durations on two idle cores. For more, see docs/testing.md."
	@for group in "day:every day" "change:before a change is proposed (.ci/run does most of it)" "measure:measuring, and rarely"; do \
		printf '\n%s\n' "$${group#*:}"; \
		awk -F ' ## ' -v group="$${group%%:*}" '/^[a-z-]+:.* ## / { split($$2, says, " [|] "); sub(/:.*/, "", $$1); \
			if (says[1] == group) printf "  %-13s %-11s %s\n", $$1, says[2], says[3] }' $(MAKEFILE_LIST); \
	done

setup: ## day | 1 min once | Install redis-server and valkey-server for tests
	@scripts/redis-server.sh setup

test: setup ## day | 2 min | Run most tests with a real server; list the skipped ones
	$(GO) run ./test/testrun ./...

test-all: setup ## change | 7 min | Run all tests with the race detector: also Java, clusters, load, long leases
	scripts/model.sh setup
	$(GO) run ./test/testrun -all ./...

# make test-all runs it with the race detector, which skips some of it.
compat: setup ## change | 3 min each | Compare with live Redissons, releases COMPAT (JDK 17, Maven)
	scripts/compat.sh $(COMPAT)
	REDLATCH_COMPAT=1 REDLATCH_COMPAT_VERSIONS="$(COMPAT)" \
		$(GO) test -v -timeout 90m -run 'TestRedissonAndRedlatchShareLocks' .

mixed: setup ## change | 1 min | Test with Redissons in clusters, releases COMPAT; full run: WAKEUPS=100 (10 min)
	$(if $(WAKEUPS),scripts/compat.sh $(COMPAT))
	cd test/containers && $(if $(WAKEUPS),\
		REDLATCH_COMPAT=1 REDLATCH_COMPAT_VERSIONS="$(COMPAT)" REDLATCH_WAKEUPS=$(WAKEUPS) \
			$(GO) test -count=1 -v -parallel 1 -timeout 60m ./mixed,\
		$(GO) test -race -count=1 -timeout 5m ./mixed)

vectors: setup ## measure | 1 min | Record live Redissons, releases RELEASES, in test/compat/testdata
	scripts/compat.sh $(RELEASES)
	REDLATCH_COMPAT=1 REDLATCH_VECTORS=write REDLATCH_COMPAT_VERSIONS="$(RELEASES)" \
		$(GO) test -count=1 -timeout 20m -run 'TestRedissonAndRedlatchShareLocks/^[0-9.]+$$/^scripts$$/^server$$/^recorded$$' .
	REDLATCH_VECTORS=write $(GO) test -count=1 -run '^TestScriptsMatchRecordedVectors$$' ./test/compat

mutants: setup ## change | 40 min all | Plant bugs that tests must find (MUTANTS=regexp, CHANGED=revision, LIMIT=8m)
	$(GO) run ./test/mutants -run '$(MUTANTS)' -changed '$(CHANGED)' -limit $(LIMIT)

mutate: setup ## change | 3 s each | Mutate the changes since BASE, and list mutants that pass all tests (LIMIT=8m)
	$(GO) run ./test/mutants -generate '$(BASE)' -run '$(MUTANTS)' -limit $(LIMIT)

model: ## change | 2 min | Check the models of docs/model with Spin (RUN: regexp over the lines of runs.txt)
	scripts/model.sh '$(RUN)'

bench: setup ## measure | 18 min | Measure against other clients: RUNS (1), ROUNDS (3), SCALE (1), WHAT (regexp), OUT (docs/performance)
	cd bench && $(GO) build -o ../bin/bench .
	java=$$(scripts/bench-java.sh) && bin/bench run -runs $(RUNS) -rounds $(ROUNDS) -scale $(SCALE) -what '$(WHAT)' -out '$(OUT)' -java "$$java"

bench-quick: setup ## measure | 2 min | Compare the working tree with git revision BASE (HEAD)
	scripts/bench-quick.sh '$(BASE)'

loss: setup ## measure | 8 min | Measure when clients report a lost lock, into docs/reliability (NOTE)
	cd bench && $(GO) build -o ../bin/bench .
	bin/bench loss -note '$(NOTE)'

# No time limit: each of its steps has one.
stress: RUN = TestStress
stress: setup ## measure | DURATION | Run clients under faults (10m), and check their histories (SEED, RUN)
	$(GO) test -race -count=1 -v -timeout 0 -run '^$(RUN)$$' ./test/stress -duration $(DURATION) -seed $(SEED)

fleet: ## measure | DURATION | Run fleets of clients under faults on fake time (SEED; FLEETS: a number instead of DURATION)
	$(GO) test -count=1 -v -timeout 0 -run '^TestFleets$$' ./test/stress/fleet -seed $(SEED) \
		$(if $(filter-out 0,$(FLEETS)),-fleets $(FLEETS),-duration $(DURATION))

# Sequential, because the failovers are timed.
failover: setup ## measure | 10 min | Fail over masters in every way, and print the figures behind the table of docs/topologies.md
	for a in goredis rueidis; do \
		(cd adapter/$$a && REDLATCH_FAILOVER=full $(GO) test -count=1 -v -timeout 20m -run '^TestFailoverTable$$' .) || exit 1; \
	done

modules: setup ## change | 15 min | Vet, lint and test MODULES, by default all nested modules (RUN: tests to run)
	RUN='$(RUN)' scripts/modules.sh $(MODULES)

vulncheck: ## measure | 5 min | Check the dependencies of all modules for known vulnerabilities (internet)
	for mod in $$(git ls-files go.mod '*/go.mod' | grep -Ev '^tools/|/testdata/'); do \
		(cd "$$(dirname "$$mod")" && echo "$$mod" && $(GO) tool -modfile='$(CURDIR)/tools/go.mod' govulncheck -test ./...) || exit 1; \
	done

release: ## measure | 2 min | Check whether VERSION can be released; write, commit and tag it (DRY=1: only check)
	$(GO) run -C scripts/release . $(if $(DRY),-dry-run) '$(VERSION)'

api: ## change | 1 min | List API changes since the last tag (SINCE: another revision); build adapters with the core of REDLATCH_BASE
	$(GO) run -C scripts/release . -api -since '$(SINCE)'
	scripts/adapters-core.sh

package-check: setup ## change | 1 min | Build archives and packages twice, install the Debian package, and run docs/quickstart.md (TARGETS=all)
	scripts/package-check.sh $(TARGETS)

pictures: setup ## measure | 7 min | Draw the live page for docs/ui.md, and the dashboard for docs/observability.md
	scripts/chromium.sh
	cd test/browser && REDLATCH_PICTURE=$(CURDIR)/docs/ui.png $(GO) test -count=1 -run TestPage/ChartsMove .
	scripts/prometheus.sh >/dev/null
	cd test/observability && REDLATCH_PICTURE=$(CURDIR)/docs/observability/dashboard.svg $(GO) test -count=1 -run TestDashboardPanelsShowData .
	chmod 644 docs/observability/dashboard.svg

site: ## change | 15 s | Build the documentation site in bin/site (Python 3 with venv); fails on broken links
	python3 -m venv bin/mkdocs
	bin/mkdocs/bin/pip install --quiet --disable-pip-version-check --requirement scripts/site.txt
	NO_MKDOCS_2_WARNING=1 bin/mkdocs/bin/mkdocs build

# golangci-lint also runs the checks of go vet.
lint: check ## day | 30 s | Run check, the linters (3 min the first time), and the check for tests in real time
	$(GO) test -C tools ./realtime
	$(GO) vet -vettool=$$($(GO) -C tools tool -n realtime) ./...
	$(GOLANGCI) run --allow-serial-runners ./...

# Fast checks first.
check: ## day | 5 s | Check formatting, words, sizes and imports
	scripts/check-fmt.sh
	scripts/check-words.sh
	$(GO) run scripts/sizes.go
	$(GO) run scripts/arrows.go

build: ## day | 1 min | Build everything, and the command line into bin/
	$(GO) build ./...
	$(GO) build -o bin/ ./cmd/...

cross: ## change | 20 s | Vet for macOS and Windows, including tests
	vet=$$($(GO) -C tools tool -n crossvet) && for os in darwin windows; do GOOS=$$os CGO_ENABLED=0 $$vet ./... || exit 1; done

demo: ## day | 10 s | Show three processes with one fair lock on an embedded server
	$(GO) run ./cmd/redlatch demo

fuzz: ## change | 2 min | Run each fuzz target for FUZZTIME (10s)
	FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

clean: ## measure | 1 s | Remove the files made by other targets
	rm -rf bin dist internal/test/peer/java/target bench/java/target
	$(GO) clean -testcache
