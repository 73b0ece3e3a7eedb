#!/usr/bin/env bash
# Vets and lints the module of the suites for every server, and runs them: in containers
# where Docker is, else on what is installed. RUN picks some, as go test -run does;
# REDLATCH_ITEST=docker or local says on what.
set -euo pipefail

cd "$(dirname "$0")/.."
go build -o bin/steady ./scripts/steady # judges what a host disturbs
scripts/module-check.sh itest
cd itest
# Without the race detector, which runs over the same code in make test and in make
# adapters: what differs here is the servers.
../bin/steady -count=1 -timeout=2m ./servers &
servers=$! failed=0
# Many at once: most of what they do is to wait.
../bin/steady -count=1 -parallel=16 -timeout=15m -run="${RUN:-.}" . || failed=1
wait "$servers" || failed=1
exit $failed
