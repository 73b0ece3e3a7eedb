#!/usr/bin/env bash
# Vets, lints and tests promredlatch and otelredlatch, modules of their own, and holds that
# neither brings what the other one needs. RUN picks tests, as go test -run does.
set -euo pipefail

cd "$(dirname "$0")/.."

# without MODULE PATTERN fails when a module of the repository needs what matches.
without() {
	if (cd "$1" && go list -m all) | grep -E "$2" >&2; then
		echo "observers-check: $1 needs the module above, which is for users of the other one" >&2
		exit 1
	fi
}

without promredlatch '^go\.opentelemetry\.io/'
without otelredlatch '^github\.com/prometheus/'
for module in promredlatch otelredlatch; do
	scripts/module-check.sh "$module"
	(cd "$module" && go test -race -count=1 -timeout 3m -run "${RUN:-.}" ./...)
done
