#!/usr/bin/env bash
# Finds Prometheus and promtool for test/observability in PATH, or unpacks Debian's package
# prometheus into .servers/prometheus, which git ignores. If that is impossible, it fails with
# CI=true and otherwise warns.
#
#   scripts/prometheus.sh      prints the folder of the programs
set -euo pipefail

cd "$(dirname "$0")/.."
kept=.servers/prometheus

note() { printf '%s\n' "$*" >&2; }

show() {
	local folder
	if [ -x "$kept/usr/bin/promtool" ]; then
		folder=$PWD/$kept/usr/bin
	elif command -v prometheus >/dev/null && command -v promtool >/dev/null; then
		folder=$(dirname "$(command -v promtool)")
	else
		return 1
	fi
	note "$("$folder/promtool" --version | head -n 1)"
	printf '%s\n' "$folder"
}

# fetch unpacks the package. Lists are refreshed only when those at hand do not do.
fetch() {
	local folder=$1
	chmod 755 "$folder" # apt reads it as another user
	(cd "$folder" && apt-get -qq download prometheus >&2) || {
		if [ "$(id -u)" -eq 0 ]; then
			apt-get -qq update >&2
		else
			sudo -n apt-get -qq update >&2
		fi
		(cd "$folder" && apt-get -qq download prometheus >&2)
	} || return 1
	dpkg -x "$folder"/prometheus_*.deb "$folder/root" || return 1
	mkdir -p .servers
	rm -rf "$kept"
	mv "$folder/root" "$kept"
}

show && exit
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if command -v apt-get >/dev/null && command -v dpkg >/dev/null && fetch "$folder" && show; then
	exit
fi
note "NOT TESTED WITH PROMETHEUS: prometheus and promtool not found."
note "To install them: sudo apt-get install prometheus, or brew install prometheus"
[ "${CI:-}" != true ]
