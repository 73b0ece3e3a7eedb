#!/usr/bin/env bash
# Vets, lints and tests the guards of package fence on real databases, a module of its own.
# SQLite is compiled into the tests. PostgreSQL and MariaDB are those that are installed; a
# test that misses one says so and is skipped, and on a bare CI machine they are installed.
set -euo pipefail

cd "$(dirname "$0")/.."
if [ "${CI:-}" = true ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >&2
	apt-get install -y -qq --no-install-recommends postgresql mariadb-server-core >&2
fi
scripts/module-check.sh test/fence
cd test/fence
go test -race -count=1 -timeout 5m ./...
