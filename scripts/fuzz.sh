#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME each (default 10s). Go fuzzes one
# target of one package at a time. Before Go 1.27, a run can end with "context deadline exceeded" and
# no failing input, although nothing failed (https://go.dev/issue/75804).
set -euo pipefail

cd "$(dirname "$0")/.."
fuzztime=${FUZZTIME:-10s}
count=0
log=$(mktemp)
trap 'rm "$log"' EXIT

# targets prints the fuzz targets of the package in folder $1, one a line.
targets() {
	find "$1" -maxdepth 1 -name '*_test.go' -exec \
		sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' {} +
}

while read -r dir; do
	while read -r target; do
		echo "fuzz: $target in .${dir#"$PWD"} for $fuzztime"
		if ! go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$dir" </dev/null 2>&1 | tee "$log"; then
			if grep -q 'Failing input' "$log" || ! grep -q '^ *context deadline exceeded$' "$log"; then
				exit 1
			fi
		fi
		count=$((count + 1))
	done < <(targets "$dir")
done < <(go list -f '{{.Dir}}' ./...)

if [ "$count" -eq 0 ]; then
	echo "fuzz: no fuzz target found" >&2
	exit 1
fi
echo "fuzz: $count targets passed"
