#!/usr/bin/env bash
# Runs "Getting started" of docs/observability.md in an empty folder: all its commands, in order,
# with its file. It fails if a step does not have the documented result.
#
# Differences from the page: redlatch is built from this checkout, Prometheus is from
# scripts/prometheus.sh, and all ports are free ones.
set -Eeuo pipefail

cd "$(dirname "$0")/.."
page=$PWD/docs/observability.md
prometheus=$(scripts/prometheus.sh)
[ -n "$prometheus" ] || exit 0 # it has said so, and CI fails
work=$(mktemp -d)
go build -o "$work/bin/redlatch" ./cmd/redlatch
pids=()
cleanup() {
	local pid
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || true
	done
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
fail() {
	echo "observe: $*" >&2
	tail -n 5 "$work"/*.out >&2 || true
	exit 1
}
trap 'fail "line $LINENO"' ERR

cd "$work"
export PATH="$work/bin:$prometheus:$PATH"
unset REDIS_URL REDIS_PASSWORD
# Three ports that are free now.
reads_ports() { python3 -c '
import socket
all = [socket.socket() for _ in range(3)]
for s in all: s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in all])'; }
read -r redis exporter web < <(reads_ports)
export REDIS_URL=redis://127.0.0.1:$redis

# The section, without the indentation of its list.
section=$(awk '/^## /{ on = $0 == "## Getting started" } on' "$page" | sed 's/^   //')
[ -n "$section" ] || fail "the page has no such section"
moved() { sed "s/127\.0\.0\.1:6379/127.0.0.1:$redis/; s/9797/$exporter/g; s/9090/$web/g"; }

# The file: the block after a line with its name.
awk '/^`prometheus\.yml`:$/ { named = 1 } named && /^```/ { n++; next } named && n == 1' <<<"$section" | moved >prometheus.yml
grep -q scrape_configs prometheus.yml || fail "the page has no prometheus.yml"

# The commands: all other blocks.
mapfile -t commands < <(awk '/^`prometheus\.yml`:$/ { skip = 1 } /^```/ { inside = !inside; if (!inside) skip = 0; next } inside && !skip' <<<"$section" | moved)
[ "${#commands[@]}" -ge 7 ] || fail "the page has ${#commands[@]} commands"

# soon waits until a command succeeds.
soon() {
	local limit=$1 began=$SECONDS
	shift
	until "$@"; do
		[ $((SECONDS - began)) -lt "$limit" ] || return 1
		sleep 0.2
	done
}
answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
scraped() { eval "$1" >scraped.out 2>&1 && grep -q '^redlatch_server_locks_held{group="orders",kind="plain"} 1$' scraped.out; }
filled() { eval "$1" >panel.out 2>&1 && grep -q '{group="orders", kind="plain"} => 1 ' panel.out; }
held() { redlatch status orders:42 2>/dev/null | grep -q held; }

n=0
for command in "${commands[@]}"; do
	n=$((n + 1))
	case "$command" in
	"sudo apt-get install prometheus") command -v prometheus >/dev/null || fail "there is no prometheus" ;;
	"go install "*) redlatch --version >/dev/null ;;
	*" &")
		case "$command" in "redlatch exporter"*) command=${command/exporter/exporter --listen 127.0.0.1:$exporter} ;; esac
		eval "exec ${command% &}" >"$n.out" 2>&1 &
		pids+=($!)
		case "$command" in
		"redlatch serve"*) soon 10 answers "$redis" || fail "$command: no server" ;;
		"redlatch run"*) soon 10 held || fail "$command: the lock is not held" ;;
		"redlatch exporter"*) soon 10 answers "$exporter" || fail "$command: no exporter" ;;
		"prometheus"*) soon 20 answers "$web" || fail "$command: no Prometheus" ;;
		*) fail "what is $command?" ;;
		esac
		;;
	"curl "*) soon 10 scraped "$command" || fail "$command: no metrics" ;;
	"promtool query"*) soon 25 filled "$command" || fail "$command: $(cat panel.out)" ;;
	*) fail "what is $command?" ;;
	esac
done
[ -s panel.out ] || fail "the page queries no panel"
echo "observe: the panel is filled after $SECONDS s: $(cat panel.out)"
