#!/usr/bin/env bash
# Vets and lints a nested module, and holds that nothing that only it needs has come
# into the library's go.mod or go.sum: scripts/module-check.sh bench.
set -euo pipefail

module=$1
cd "$(dirname "$0")/.."
root=$PWD
cd "$module"

go vet ./...
go tool -modfile="$root/tools/go.mod" golangci-lint run --allow-serial-runners --config "$root/.golangci.yml" ./...

# require lists the modules that a go.mod names.
require() {
	go mod edit -json "$1" | sed -n '/"Require"/,/^\t\]/s/.*"Path": "\(.*\)".*/\1/p' | sort
}

own=$(comm -23 <(require go.mod) <(require "$root/go.mod") | grep -vx 'github.com/redlatch/redlatch')
[ -n "$own" ] || {
	echo "module-check: found no module that $module alone needs: the check itself is broken" >&2
	exit 2
}
# Older names in go.sum are of go.mod files that were looked at, never of code.
while read -r name; do
	if grep -q "^$name v[^ /]* h1:" "$root/go.sum"; then
		echo "module-check: $name is needed by $module alone, but the library's go.sum has it" >&2
		exit 1
	fi
done <<<"$own"
