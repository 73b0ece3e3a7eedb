#!/usr/bin/env bash
# Compares the working tree with a revision of git, pair by pair.
#
#   scripts/bench-quick.sh REVISION [flags of `bench quick`]
#
# Both sides use the benchmark of the working tree if it builds with the library of the
# revision.
set -euo pipefail

cd "$(dirname "$0")/.."

[ $# -ge 1 ] || {
	echo "usage: scripts/bench-quick.sh REVISION" >&2
	exit 2
}
base=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

git rev-parse --verify --quiet "$base^{commit}" >/dev/null || {
	echo "bench-quick: unknown revision $base" >&2
	exit 2
}
mkdir "$work/base"
git archive "$base" | tar -x -C "$work/base"
# The go.mod of the benchmark, with the library of the base in place of this one.
cp bench/go.sum "$work/base.sum"
cp bench/go.mod "$work/base.mod"
(
	cd bench
	go mod edit -replace "github.com/redlatch/redlatch=$work/base" "$work/base.mod"
	go build -o "$work/tree" .
)
# If the API has changed, use the base's own benchmark with its own scripts.
(cd bench && go build -modfile="$work/base.mod" -o "$work/bench-base" . 2>"$work/errors") || {
	cat "$work/errors" >&2
	echo "bench-quick: using the benchmark of $base for it, because the working tree's does not build" >&2
	(cd "$work/base/bench" && go build -o "$work/bench-base" .)
}
printf 'The working tree against %s\n' "$(git log -1 --format='%h %s' "$base")"
"$work/tree" quick -base "$work/bench-base" "$@"
