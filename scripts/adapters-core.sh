#!/usr/bin/env bash
# Builds each adapter, and each other published module, with the core of another commit and vice versa,
# like programs that upgrade only one of the two:
#
#	the adapter of the other commit with the core of this tree: must build, since a
#	program may upgrade the core alone. Until CHANGELOG.md has a released version,
#	a failure is only reported;
#	the adapter of this tree with the core of the other commit: must build, unless the
#	core of this tree declares more in its public packages. Then the adapter may use the
#	new names, its go.mod must require that core when it is tagged, and the script
#	reports it.
#
# It is an error if an adapter of this tree imports an internal package of the core. An
# adapter of the other commit that did so is skipped.
#
# scripts/adapters-core.sh [REVISION]: by default REDLATCH_BASE, else HEAD, or the commit
# before it when the tree has no changes.
set -euo pipefail

cd "$(dirname "$0")/.."
root=$PWD
module=github.com/redlatch/redlatch

# In a container the checkout may be another user's.
git() { command git -c "safe.directory=$root" "$@"; }

base=${1:-${REDLATCH_BASE:-}}
if [ -z "$base" ]; then
	base=HEAD
	if git diff --quiet HEAD -- '*.go' '*go.mod'; then
		base=HEAD^
	fi
fi
if ! base=$(git rev-parse --verify --quiet "$base^{commit}"); then
	echo "adapters-core: skipped: no commit to build with (a shallow clone?)"
	[ "${CI:-}" != true ] # nothing tried is a failure there
	exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/base" "$work/tree"
git archive "$base" | tar -x -C "$work/base"

# internals reports whether the adapter in a folder imports internal packages of the core.
internals() {
	grep -rq --include='*.go' --exclude='*_test.go' "\"$module/internal/" "$1"
}

# builds FOLDER CORE builds the module in a folder with the core in another one.
builds() {
	(
		cd "$1" &&
			go mod edit -replace "$module=$2" &&
			GOFLAGS=-mod=mod go build -gcflags=-e ./...
	)
}

# public ROOT prints what the public packages of the core declare.
public() {
	(
		cd "$1"
		packages=$(GOFLAGS=-mod=mod go list ./... | grep -Ev '/(internal|cmd|test|examples|scripts)(/|$)')
		for package in $packages; do
			go doc -all "$package" | grep -E '^(func|type|var|const) |^	[A-Z][A-Za-z]*' || true
		done
	)
}

tried=0
for mod in adapter/*/go.mod gocronredlatch/go.mod otelredlatch/go.mod promredlatch/go.mod; do
	name=$(dirname "$mod")
	if internals "$name"; then
		echo "adapters-core: $name imports internal packages of the core" >&2
		exit 1
	fi
	if [ ! -d "$work/base/$name" ]; then
		echo "adapters-core: $name is not in ${base:0:12}: skipped"
		continue
	fi
	if internals "$work/base/$name"; then
		echo "adapters-core: $name imports internal packages in ${base:0:12}: skipped"
		continue
	fi
	cp -R "$name" "$work/tree/"
	if builds "$work/base/$name" "$root" 2>"$work/errors"; then
		:
	else
		cat "$work/errors" >&2
		echo "adapters-core: $name of ${base:0:12} does not build with the core of this tree:" >&2
		echo "adapters-core: a program that upgrades only the core would break" >&2
		! grep -q '^## \[[0-9]' CHANGELOG.md || exit 1
	fi
	if ! builds "$work/tree/$(basename "$name")" "$work/base"; then
		public "$work/base" >"$work/older"
		public "$root" >"$work/newer"
		if [ -z "$(comm -13 <(sort -u "$work/older") <(sort -u "$work/newer"))" ]; then
			echo "adapters-core: $name does not build with the core of ${base:0:12}, although the API is the same" >&2
			exit 1
		fi
		echo "adapters-core: $name needs a newer core than ${base:0:12}: its go.mod must require it"
	fi
	tried=$((tried + 1))
done
echo "adapters-core: $tried adapters built with the core of this tree and of ${base:0:12}"
