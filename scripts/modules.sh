#!/usr/bin/env bash
# Vets, lints and tests nested modules, all of them by default: scripts/modules.sh [MODULE...]
# RUN selects tests like go test -run.
set -euo pipefail

cd "$(dirname "$0")/.."
root=$PWD
run=(-vet=off -count=1 -run "${RUN:-.}") # lint vets

fail() {
	echo "modules: $*" >&2
	exit 1
}

# require lists the modules that a go.mod names.
require() {
	go mod edit -json "$1" | sed -n '/"Require"/,/^\t\]/s/.*"Path": "\(.*\)".*/\1/p' | sort
}

# lint lints the module in this folder, and checks that the library's go.sum has none of the modules
# that only this one needs. golangci-lint also runs the checks of go vet.
lint() {
	local own name vet
	if [ "$1" = cmd/redlatch/full ]; then # make cross does not include this module
		vet=$(go -C "$root/tools" tool -n crossvet)
		GOOS=darwin CGO_ENABLED=0 "$vet" ./...
		GOOS=windows CGO_ENABLED=0 "$vet" ./...
	fi
	go vet -vettool="$(go -C "$root/tools" tool -n realtime)" ./...
	go tool -modfile="$root/tools/go.mod" golangci-lint run --allow-serial-runners --config "$root/.golangci.yml" ./...
	own=$(comm -23 <(require go.mod) <(require "$root/go.mod"))
	# Other lines of go.sum are for go.mod files only.
	while read -r name; do
		[ -z "$name" ] || ! grep -q "^$name v[^ /]* h1:" "$root/go.sum" || fail "$name is needed only by $1, but is in the library's go.sum"
	done <<<"$own"
}

# without fails if the module in this folder needs a module that matches a pattern.
without() {
	! go list -m all | grep -E "$1" >&2 || fail "this module must not need the module above"
}

# databases installs the databases for the tests of package fence on a CI machine. Elsewhere a test
# without its database is skipped.
databases() {
	[ "${CI:-}" = true ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || return 0
	local -a install=(apt-get install -o DPkg::Lock::Timeout=300 -y -qq --no-install-recommends postgresql mariadb-server-core)
	export DEBIAN_FRONTEND=noninteractive
	"${install[@]}" >&2 || { apt-get update -qq >&2 && "${install[@]}" >&2; }
}

# both runs two commands concurrently.
both() {
	local first failed=0
	$1 &
	first=$!
	"${@:2}" || failed=1
	wait "$first" || failed=1
	return $failed
}

# scripts_elsewhere runs the scripts' tests on servers of other releases.
scripts_elsewhere() {
	local program
	for program in "$root"/.servers/more/*/*-server; do
		[ -x "$program" ] || continue
		printf 'scripts on %s\n' "${program#"$root"/}"
		(cd "$root" && REDLATCH_SERVER=$program go test -vet=off -count=1 -run 'MatchVectors$/^server$' ./internal/luasrc)
	done
}

tests() {
	case $1 in
	# These tests mostly wait.
	adapter/*) go test -race -parallel 16 -timeout 5m "${run[@]}" ./... ;;
	# The race detector's allocations would count.
	bench)
		REDLATCH_BENCH_JAVA=$("$root/scripts/bench-java.sh")
		export REDLATCH_BENCH_JAVA
		go test -timeout 2m "${run[@]}" ./...
		;;
	promredlatch) without '^go\.opentelemetry\.io/' && go test -race -timeout 3m "${run[@]}" ./... ;;
	otelredlatch) without '^github\.com/prometheus/' && go test -race -timeout 3m "${run[@]}" ./... ;;
	test/browser) "$root/scripts/chromium.sh" && go test -parallel 4 -timeout 5m "${run[@]}" ./... ;;
	# What differs here is the servers, not the code that the race detector sees elsewhere. go
	# test prints what was skipped for the package in its folder alone.
	test/containers)
		"$root/scripts/more-servers.sh"
		scripts_elsewhere
		both 'go test -vet=off -count=1 -timeout 2m ./servers' go test -parallel 16 -timeout 15m "${run[@]}"
		;;
	# The race detector would compile SQLite again. Tests of package fence use the detector.
	test/fence)
		databases
		go test -timeout 5m "${run[@]}" ./...
		;;
	# The race detector would compile the libraries of Helm and Kubernetes again.
	test/kubernetes) go test -timeout 5m "${run[@]}" ./... ;;
	# The race detector would compile Prometheus again. Tests of promredlatch use the detector.
	test/observability)
		"$root/scripts/prometheus.sh" >/dev/null
		both "$root/scripts/observe.sh" go test -timeout 3m "${run[@]}"
		;;
	*) go test -race -timeout 15m "${run[@]}" ./... ;;
	esac
}

if [ $# -eq 0 ]; then
	mapfile -t found < <(git -c "safe.directory=$root" ls-files '*/go.mod' | grep -Ev '^tools/|/testdata/' | xargs -n1 dirname)
	set -- "${found[@]}"
fi
for module in "$@"; do
	printf '\n--> %s\n' "$module"
	cd "$root/$module"
	lint "$module"
	tests "$module"
done
