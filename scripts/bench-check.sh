#!/usr/bin/env bash
# Vets, lints and tests the benchmark, a module of its own, and holds that nothing
# that only the benchmark needs has come into the library's go.mod or go.sum.
set -euo pipefail

cd "$(dirname "$0")/../bench"

go vet ./...
go tool -modfile=../tools/go.mod golangci-lint run --config ../.golangci.yml ./...
# Without the race detector, which would be counted among the allocations.
REDLATCH_BENCH_JAVA=$(../scripts/bench-java.sh)
export REDLATCH_BENCH_JAVA
go test -count=1 -timeout 2m ./...

# require lists the modules that a go.mod names.
require() {
	go mod edit -json "$1" | sed -n '/"Require"/,/^\t\]/s/.*"Path": "\(.*\)".*/\1/p' | sort
}

own=$(comm -23 <(require go.mod) <(require ../go.mod) | grep -vx 'github.com/redlatch/redlatch')
[ -n "$own" ] || {
	echo "bench-check: found no module that is the benchmark's alone: the check itself is broken" >&2
	exit 2
}
# Older names in go.sum are of go.mod files that were looked at, never of code.
while read -r module; do
	if grep -q "^$module v[^ /]* h1:" ../go.sum; then
		echo "bench-check: $module is the benchmark's, but the library's go.sum has it" >&2
		exit 1
	fi
done <<<"$own"
