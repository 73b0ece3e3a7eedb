#!/usr/bin/env bash
# Vets, lints and tests the benchmark, a module of its own.
set -euo pipefail

cd "$(dirname "$0")/.."

scripts/module-check.sh bench
REDLATCH_BENCH_JAVA=$(scripts/bench-java.sh)
export REDLATCH_BENCH_JAVA
cd bench
# Without the race detector, which would be counted among the allocations.
go test -count=1 -timeout 2m ./...
