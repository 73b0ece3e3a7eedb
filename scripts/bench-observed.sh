#!/usr/bin/env bash
# Compares a program with promredlatch and otelredlatch ("tree") with the same program without
# them ("base"), pair by pair. A share of BENCH_SAMPLED (0.01) of the acquisitions is traced. With
# a server 0.5 ms away, it fails if the observed program has less than 97 % of the other's
# throughput.
#
#   scripts/bench-observed.sh [flags of the second comparison, such as -rounds 4]
set -euo pipefail

cd "$(dirname "$0")/../bench"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -tags observed -o "$work/observed" .
go build -o "$work/plain" .
echo "tree: observed by promredlatch and otelredlatch; base: without an observer"
"$work/observed" quick -base "$work/plain" -what '^[^j]'
"$work/observed" quick -base "$work/plain" -what '^j' -least 0.97 -rounds 64 "$@"
