#!/usr/bin/env bash
# Vets and lints the module of the suites for every server, and runs them: in containers
# where Docker is, else on what is installed. RUN picks some, as go test -run does;
# REDLATCH_ITEST=docker or local says on what.
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/more-servers.sh
# The scripts' own tests on the servers of other releases; make test has the rest.
for program in .servers/more/*/*-server; do
	[ -x "$program" ] || continue
	printf 'scripts on %s\n' "$program"
	REDLATCH_SERVER=$PWD/$program go test -count=1 -run 'DoWhatTheVectorsSay$/^server$' ./internal/luasrc
done
scripts/module-check.sh test/containers
cd test/containers
# Without the race detector, which runs over the same code in make test-all and in make
# adapters: what differs here is the servers.
go test -count=1 -timeout 2m ./servers &
servers=$! failed=0
# In the folder and not by its name: else go test keeps to itself what they run on.
# Many at once: most of what they do is to wait.
go test -count=1 -parallel 16 -timeout 15m -run "${RUN:-.}" || failed=1
wait "$servers" || failed=1
exit $failed
