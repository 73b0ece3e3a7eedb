#!/usr/bin/env bash
# Checks the dashboard and the alerts with Prometheus: vets, lints and runs the module of their
# tests, and does what docs/observability.md says. RUN picks tests, as go test -run does.
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/prometheus.sh >/dev/null
scripts/module-check.sh test/observability
scripts/observe.sh &
walk=$! failed=0
# In the folder and not by its name: else go test keeps to itself what it skips.
(cd test/observability && go test -race -count=1 -timeout 3m -run "${RUN:-.}") || failed=1
wait "$walk" || failed=1
exit $failed
