#!/usr/bin/env bash
# Compares a program that promredlatch and otelredlatch observe ("tree") with the same program
# without them ("base"), pair by pair. Of the acquisitions BENCH_SAMPLED (0.01) are traced.
#
#   scripts/bench-observed.sh [flags of `bench quick`]
set -euo pipefail

cd "$(dirname "$0")/../bench"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -tags observed -o "$work/observed" .
go build -o "$work/plain" .
echo "tree: observed by promredlatch and otelredlatch; base: without an observer"
"$work/observed" quick -base "$work/plain" "$@"
