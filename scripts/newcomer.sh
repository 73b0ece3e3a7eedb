#!/usr/bin/env bash
# Walks through docs/quickstart.md as a newcomer would, in an empty folder, and fails
# when a step does not do what the page says. The programs are those of the page: the
# block after a line `path`: is that file.
#
# What differs from the page: the library and the command line are this checkout's,
# the server listens on a free port, and Maven is asked first to do without a network,
# since scripts/compat.sh has fetched the jars.
#
#   scripts/newcomer.sh          needs Go, a JDK (17 or later), Maven, redis-server
set -euo pipefail

cd "$(dirname "$0")/.."
checkout=$PWD
page=$checkout/docs/quickstart.md
module=github.com/redlatch/redlatch
server=${REDLATCH_SERVER:-$(command -v redis-server || command -v valkey-server || true)}

# Settings for this checkout must not leak into the newcomer's module.
export GOFLAGS=-buildvcs=false GOWORK=off

work=$(mktemp -d)
pids=()

# What was started is ended, and nothing else.
cleanup() {
	local pid
	for pid in "${pids[@]}"; do
		kill -9 "$pid" 2>/dev/null || true
	done
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT

fail() {
	printf 'newcomer: %s\n' "$*" >&2
	for file in status refused forced turns.log errors; do
		if [ -s "$work/$file" ]; then tail -n 12 "$work/$file" >&2; fi
	done
	exit 1
}

step() { printf 'newcomer: %3d s  %s\n' "$SECONDS" "$*"; }

# soon waits until a command succeeds: for how many seconds, for what, the command.
soon() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || fail "in vain: $what"
		sleep 0.1
	done
}

# unpack writes every file that the page shows.
unpack() {
	awk -v top="$work" '
		/^```/ && file { if (inside) { close(top "/" file); file = "" } inside = !inside; next }
		inside { print > (top "/" file); next }
		/^`[a-z]+-worker\/[A-Za-z.]+`:$/ { file = substr($0, 2, length($0) - 3); next }
		NF { file = "" }
	' "$page"
}

# told holds that each command of ours that the page shows is run below.
told() {
	local line found=0
	while IFS= read -r line; do
		found=1
		line=${line%% <*} # what readers have to fill in
		line=${line% &}
		sed '1,/^# --- 1/d' "$checkout/scripts/newcomer.sh" | grep -qF -- "$line" ||
			fail "the page shows a command that is not tried: $line"
	done < <(awk '/^```/ { inside = $0 == "```sh" } inside && /^redlatch /' "$page")
	[ "$found" = 1 ] || fail "the page shows no command: the check itself is broken"
}

# halt ends a process that is given no chance to clean up.
halt() { { kill -9 "$1" && wait "$1"; } 2>/dev/null || true; }

status_has() {
	redlatch status billing-run >"$work/status" && grep -qE -- "$1" "$work/status"
}

# owner_of prints the owner in the line of the status before the one that matches.
owner_of() { grep -B 1 -E -- "$1" "$work/status" | head -n 1 | awk '{ print $2 }'; }

turns() { grep -c "^$1 enters\$" turns.log || true; }
more() { [ "$(turns "$1")" -ge "$2" ]; }

# goes_on waits for turns that were not there before.
goes_on() { soon "${2:-10}" "the $1 worker goes on" more "$1" $(($(turns "$1") + 2)); }

# stands_still tells whether for three turns' time nobody entered, and the queue has
# the given length.
stands_still() {
	local before
	before=$(wc -l <turns.log)
	sleep 0.6
	[ "$before" = "$(wc -l <turns.log)" ] && status_has "^  queue  $1 waiting\$"
}

# excluded holds that nobody entered before the other had left, and that both had turns.
excluded() {
	awk '
		$2 == "enters" { if (in_) exit bad = 1; in_ = $1; if ($1 != last) changes++; last = $1 }
		$2 == "leaves" { if (in_ != $1) exit bad = 1; in_ = "" }
		END { exit bad || changes < 5 }
	' turns.log
}

for program in go java mvn "${server:-redis-server}"; do
	command -v "$program" >/dev/null || fail "there is no $program here"
done

# --- 1. A folder, a server, and the command line
mkdir -p "$work/go-worker" "$work/java-worker" "$work/bin"
unpack
for file in go-worker/main.go java-worker/Worker.java java-worker/pom.xml; do
	[ -s "$work/$file" ] || fail "the page has no file $file"
done
told
go build -o "$work/bin/redlatch" ./cmd/redlatch
cd "$work"
export PATH=$work/bin:$PATH
touch turns.log
serve() {
	local port=$((20000 + RANDOM % 10000))
	export REDIS_URL=redis://127.0.0.1:$port
	"$server" --port "$port" --bind 127.0.0.1 --save '' >redis.log &
	pids+=($!)
	sleep 0.3
	kill -0 $! 2>/dev/null && status_has 'is free' # else the port was taken
}
soon 10 "a redis-server on a free port" serve 2>errors
step "a server at $REDIS_URL"

# --- 2. The Go worker
cd go-worker
cat >go.mod <<GOMOD
module example.com/go-worker

go $(cd "$checkout" && go list -m -f '{{.GoVersion}}')

require $module v0.0.0

replace $module => $checkout
GOMOD
cp "$checkout/go.sum" .
go mod tidy
go build -o worker .
cd ..
step "the Go worker is built"

# --- 3. The Java worker
cd java-worker
libs() { mvn --quiet --batch-mode "$@" dependency:copy-dependencies -DoutputDirectory=lib </dev/null; }
libs --offline >../errors 2>&1 || libs >../errors 2>&1 || fail "Maven does not find the jars"
cd ..
step "the Java worker has its jars"

# --- 4. Both at once
go-worker/worker >>turns.log 2>errors &
pids+=($!)
java -cp 'java-worker/lib/*' java-worker/Worker.java >>turns.log 2>>errors &
jvm=$!
pids+=("$jvm")
goes_on java 40
goes_on java
goes_on go
excluded || fail "they do not take turns"
step "they take turns"

# --- 5. Who holds it, who waits
redlatch run --fair billing-run -- sleep 10 &
run=$!
pids+=("$run")
soon 10 "both workers wait" stands_still 2
redlatch status billing-run >status
grep -q 'is held' status && grep -q 'subscribed yes, Redlatch since' status &&
	grep -q 'subscribed yes, Redisson' status || fail "the status does not show both"
redlatch status --json billing-run | grep -q '"client": "redisson"' || fail "the JSON has no waiter of Redisson's"
redlatch list >listed
grep -q billing-run listed || fail "the list does not have the lock"
kill "$run"
goes_on java
goes_on go
step "the queue was seen"

# --- 6. A waiter dies
redlatch run --fair billing-run -- sleep 10 &
run=$!
pids+=("$run")
soon 10 "both workers wait" stands_still 2
halt "$jvm"
soon 10 "the dead waiter has no subscriber" status_has 'subscribed no, Redisson'
dead=$(owner_of 'subscribed no, Redisson')
redlatch evict billing-run "$dead" >evicted || fail "evict leaves $dead where it is"
grep -qF "$dead" evicted || fail "evict does not say whom it took out"
kill "$run"
goes_on go
excluded || fail "they did not take turns"
step "a dead waiter was taken out"

# --- 7. A lock is stuck
redlatch run --fair --lease 1h billing-run -- sleep 3600 &
run=$!
pids+=("$run")
soon 10 "the Go worker waits" stands_still 1
halt "$run"
stands_still 1 || fail "the lock of a dead holder is not stuck"
dead=$(awk '$1 == "owner" { print $2 }' status)
redlatch unlock --force --for 3s billing-run >refused 2>&1 && fail "a holder that may be alive lost its lock"
grep -qF "$dead" refused || fail "the refusal does not name $dead"
stands_still 1 || fail "the lock was taken although that was refused"
redlatch unlock --force --for 3s --reason 'killed by hand' --dead "$dead" billing-run >forced 2>&1 ||
	fail "the lock of $dead was not taken from it"
grep -q 'killed by hand' forced || fail "there is no audit line"
goes_on go
step "a stuck lock was cleared"
excluded || fail "they did not take turns"
step "done"
