#!/usr/bin/env bash
# Vets, lints and tests the adapters, modules of their own: all of them, or the named
# ones: scripts/adapters-check.sh goredis. RUN picks tests, as go test -run does.
set -euo pipefail

cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
	for mod in adapter/*/go.mod; do
		set -- "$@" "$(basename "$(dirname "$mod")")"
	done
fi
[ $# -gt 0 ] || {
	echo "adapters-check: found no adapters: the check itself is broken" >&2
	exit 2
}
for name in "$@"; do
	scripts/module-check.sh "adapter/$name"
	# Many at once: most of what they do is to wait for servers that have failed.
	(cd "adapter/$name" && go test -race -count=1 -parallel 16 -timeout 5m -run "${RUN:-.}" ./...)
done
