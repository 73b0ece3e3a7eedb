#!/usr/bin/env bash
# Checks the models in docs/model with Spin. Each line of docs/model/runs.txt is a run that
# must hold, or must violate the named property:
#
#   scripts/model.sh [REGEXP]    only the lines that match
#   scripts/model.sh setup       only install Spin and gcc with apt-get if they are missing
#
# A line has the model, its preprocessor flags, joined by commas, or "-", and "holds" or
# "fails:PROPERTY".
set -euo pipefail

cd "$(dirname "$0")/.."

# one LINE checks a run in a folder of its own and prints one line, or fails.
one() {
	local model flags expected folder out verdict=wrong
	read -r model flags expected _ <<<"$1"
	folder=$(mktemp -d)
	out=$folder/out
	local -a defines=()
	[ "$flags" = - ] || IFS=, read -ra defines <<<"$flags"
	(
		cp docs/model/*.pml "$folder"
		cd "$folder"
		ulimit -v 4000000 # a wrong model can make Spin take all memory
		spin "${defines[@]}" -a "$model.pml"
		gcc -O2 -w -DCOLLAPSE -DSAFETY -DMEMLIM=2000 "${defines[@]}" -o pan pan.c
		./pan -m2000000
	) >"$out" 2>&1 || true
	case $expected in
	holds) grep -q 'errors: 0' "$out" && ! grep -q 'max search depth too small\|Search not completed' "$out" && verdict=right ;;
	# The first complaint names the property.
	fails:*) grep -m 1 '^pan:1:' "$out" | grep -qw "${expected#fails:}" && verdict=right ;;
	esac
	awk -v run="$model $flags $expected" -v verdict="$verdict" '/states, stored/ && !n { n = $1 } /pan: elapsed time/ { s = $4 } /total actual memory/ { m = $1 }
		END { printf "%-60s %-5s %10s states %6s s %7s MB\n", run, verdict, n, s, m }' "$out"
	[ $verdict = right ] || { tail -n 30 "$out" >&2; exit 255; }
	rm -r "$folder"
}
export -f one

install() {
	local -a install=(apt-get install -o DPkg::Lock::Timeout=300 -y -qq spin gcc libc6-dev)
	"${install[@]}" >&2 || { apt-get update -qq && "${install[@]}" >&2; }
}

if ! command -v spin >/dev/null || ! command -v gcc >/dev/null; then
	if ! command -v apt-get >/dev/null || ! install; then
		echo "The models need spin and gcc in PATH." >&2
		exit 1
	fi
fi
[ "${1:-}" != setup ] || exit 0
grep -v '^#\|^$' docs/model/runs.txt | grep -E -- "${1:-.}" | tr '\n' '\0' | xargs -0 -P "$(nproc)" -I{} bash -c 'one "$1"' _ {}
