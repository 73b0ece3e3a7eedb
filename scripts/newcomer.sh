#!/usr/bin/env bash
# Follows docs/quickstart.md in an empty folder, as the README recommends, and then runs the
# README's commands. It fails if a step does not have the documented result. The programs are
# from the page: the block after a line `path`: is that file. All commands of the page run
# unchanged and in order.
#
# Differences from the pages: the library and the command line are built from this checkout,
# the server listens on a free port, and Maven first runs offline, since scripts/compat.sh has
# downloaded the jars.
#
#   scripts/newcomer.sh          needs Go, a JDK (17 or later), Maven, redis-server
#   REDLATCH_INSTALLED=PROGRAM scripts/newcomer.sh
#                                the command line is this program, not the checkout's
set -Eeuo pipefail

cd "$(dirname "$0")/.."
checkout=$PWD
readme=$checkout/README.md
page=$checkout/docs/quickstart.md
module=github.com/redlatch/redlatch
server=${REDLATCH_SERVER:-$(command -v redis-server || command -v valkey-server || true)}

# Settings for this checkout must not leak into the newcomer's module.
export GOFLAGS=-buildvcs=false GOWORK=off

work=$(mktemp -d)
folder=$work/two-workers
pids=()

# Stop only the processes started here.
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
		if [ -s "$folder/$file" ]; then command tail -n 12 "$folder/$file" >&2; fi
	done
	exit 1
}
trap 'fail "line $LINENO has failed"' ERR

step() { printf 'newcomer: %3d s  %s\n' "$SECONDS" "$*"; }

# soon SECONDS WHAT COMMAND waits until a command succeeds.
soon() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || fail "timeout: $what"
		sleep 0.1
	done
}

# --- The commands of a page, in its order

# reads reads the commands of a page, one per line.
reads() {
	mapfile -t commands
	[ "${#commands[@]}" -gt 3 ] || fail "no commands found in the page"
}

# does runs the next command of the page, which must be this one. Pairs after it are the values
# that readers fill in.
does() {
	local line=$1
	shift
	[ "$line" = "${commands[0]:-}" ] || fail "the page says: ${commands[0]:-nothing more}; here it would be: $line"
	commands=("${commands[@]:1}")
	while [ $# -gt 0 ]; do
		line=${line//"$1"/$2}
		shift 2
	done
	eval "$line"
}

# began records a background process of a command.
began() { pids+=("$!"); }

# all_done checks that no command of the page was left out.
all_done() { [ "${#commands[@]}" = 0 ] || fail "untested command in the page: ${commands[0]}"; }

# Replacements for the differences from the page.
redis-server() { exec "$server" --port "$port" --bind 127.0.0.1 "$@"; }
go() {
	case "$*" in
	"run ./cmd/redlatch "*) redlatch "${@:3}" ;;
	"install $module/cmd/redlatch@latest")
		mkdir -p "$work/bin"
		if [ -n "${REDLATCH_INSTALLED:-}" ]; then
			ln -sf "$REDLATCH_INSTALLED" "$work/bin/redlatch"
		else
			command go build -C "$checkout" -o "$work/bin/redlatch" ./cmd/redlatch
		fi
		;;
	"get $module")
		command go mod edit -require "$module@v0.0.0" -replace "$module=$checkout"
		cp "$checkout/go.sum" .
		command go mod tidy
		;;
	"env GOPATH") printf '%s\n' "$work" ;;
	*) command go "$@" ;;
	esac
}
mvn() {
	command mvn --batch-mode --offline "$@" </dev/null >"$folder/errors" 2>&1 ||
		command mvn --batch-mode "$@" </dev/null >"$folder/errors" 2>&1
}
# CI runs the tests separately: here the target must only exist.
make() { command make -C "$checkout" --dry-run "$@" >/dev/null; }
tail() { soon 10 "somebody writes to $2" test -s "$2"; } # what is there is looked at below

# unpack writes every file of the page.
unpack() {
	awk -v top="$folder" '
		/^```/ && file { if (inside) { close(top "/" file); file = "" } inside = !inside; next }
		inside { print > (top "/" file); next }
		/^`[a-z]+-worker\/[A-Za-z.]+`:$/ { file = substr($0, 2, length($0) - 3); next }
		NF { file = "" }
	' "$page"
	for file in go-worker/main.go java-worker/Worker.java java-worker/pom.xml; do
		[ -s "$file" ] || fail "the page has no file $file"
	done
}

# --- Results to check

status_has() {
	redlatch status billing-run >"$folder/status" 2>>"$folder/errors" && grep -qE -- "$1" "$folder/status"
}

# owner_of prints the owner in the line of the status before the one that matches.
owner_of() { grep -B 1 -E -- "$1" status | head -n 1 | awk '{ print $2 }'; }

turns() { grep -c "^$1 enters\$" turns.log || true; }
more() { [ "$(turns "$1")" -ge "$2" ]; }

# goes_on waits for new turns.
goes_on() { soon "${2:-10}" "the $1 worker goes on" more "$1" $(($(turns "$1") + 2)); }

# stands_still reports whether there was no turn for three turns' time and the queue has the
# given length.
stands_still() {
	local before
	before=$(wc -l <turns.log)
	sleep 0.6
	[ "$before" = "$(wc -l <turns.log)" ] && status_has "^  queue  $1 waiting\$"
}

# excluded checks that turns do not overlap and that both workers had turns.
excluded() {
	awk '
		$2 == "enters" { if (in_) exit bad = 1; in_ = $1; if ($1 != last) changes++; last = $1 }
		$2 == "leaves" { if (in_ != $1) exit bad = 1; in_ = "" }
		END { exit bad || changes < 5 }
	' turns.log
}

# gone silently waits for the end of a killed process.
gone() { { wait "$1" || true; } 2>/dev/null; }

for program in java mvn timeout "${server:-redis-server}"; do
	type -P "$program" >/dev/null || fail "$program not found"
done

# --- The README sends newcomers to the page
grep -qF '[Ten minutes with Go and Java](docs/quickstart.md)' "$readme" || fail "the README does not link to the page"
reads < <(awk '/^```/ { inside = $0 == "```sh"; next } inside' "$page")

# --- 1. A folder, a server, and the command line
cd "$work"
does "mkdir -p two-workers/go-worker two-workers/java-worker && cd two-workers"
port=$((20000 + RANDOM % 10000))
while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
does "redis-server --save '' > redis.log &"
began
does "export REDIS_URL=redis://localhost:6379"
REDIS_URL=redis://127.0.0.1:$port
does "go install $module/cmd/redlatch@latest"
# shellcheck disable=SC2016 # it is expanded when it is run
does 'export PATH=$PATH:$(go env GOPATH)/bin'
[ "$(type -P redlatch)" = "$work/bin/redlatch" ] || fail "the shell finds another redlatch: $(type -P redlatch)"
soon 10 "a server answers" status_has 'is free'
unpack
step "a server at $REDIS_URL"

# --- 2. The Go worker
does "cd go-worker"
does "go mod init example.com/go-worker && go get $module" 2>>../errors
does "go build -o worker ."
does "cd .."
step "the Go worker is built"

# --- 3. The Java worker
does "cd java-worker"
does "mvn --quiet dependency:copy-dependencies -DoutputDirectory=lib" || fail "Maven cannot find the jars"
does "cd .."
step "the Java worker has its jars"

# --- 4. Both concurrently
does "go-worker/worker >> turns.log &" 2>errors
began
does "java -cp 'java-worker/lib/*' java-worker/Worker.java >> turns.log &" 2>>errors
began
jvm=$!
does "tail -f turns.log"
goes_on java 40
goes_on java
goes_on go
excluded || fail "they do not take turns"
step "they take turns"

# --- 5. Who holds it, who waits
does "redlatch run --fair billing-run -- sleep 10 &"
began
run=$!
soon 10 "both workers wait" stands_still 2
does "redlatch status billing-run" >status
for what in 'is held' 'subscribed yes, Redlatch since' 'subscribed yes, Redisson'; do
	grep -q "$what" status || fail "missing in the status: $what"
done
redlatch status --json billing-run | grep -q '"client": "redisson"' || fail "the JSON has no Redisson waiter"
does "redlatch list" >listed
grep -q billing-run listed || fail "the list does not have the lock"
kill "$run" # so that nobody waits for 10 seconds
goes_on java
goes_on go
step "the queue was seen"

# --- 6. A waiter dies
does "redlatch run --fair billing-run -- sleep 10 &"
began
run=$!
soon 10 "both workers wait" stands_still 2
does "kill -9 <the JVM's process id>" "<the JVM's process id>" "$jvm"
gone "$jvm"
soon 10 "the dead waiter has no subscriber" status_has 'subscribed no, Redisson'
does "redlatch status billing-run" >status
dead=$(owner_of 'subscribed no, Redisson')
does "redlatch evict billing-run <its owner, from the status>" "<its owner, from the status>" "$dead" >evicted ||
	fail "evict did not remove $dead"
grep -qF "$dead" evicted || fail "evict does not print the evicted owner"
kill "$run"
goes_on go
excluded || fail "they did not take turns"
step "a dead waiter was taken out"

# --- 7. A lock is stuck
does "redlatch run --fair --lease 1h billing-run -- sleep 3600 &"
began
run=$!
soon 10 "the Go worker waits" stands_still 1
does "kill -9 <the process id of redlatch>" "<the process id of redlatch>" "$run"
gone "$run"
stands_still 1 || fail "the lock of a dead holder is not stuck"
does "redlatch status billing-run" >status
dead=$(awk '$1 == "owner" { print $2 }' status)
does "redlatch unlock --force --for 3s billing-run" >refused 2>&1 && fail "unlock --force took the lock of a holder that may be alive"
grep -qF "$dead" refused || fail "the error does not name $dead"
stands_still 1 || fail "the lock was released although that was rejected"
does "redlatch unlock --force --for 3s --reason 'killed by hand' --dead <its owner> billing-run" "<its owner>" "$dead" >forced 2>&1 ||
	fail "the lock of $dead was not released"
grep -q 'killed by hand' forced || fail "no audit line"
goes_on go
excluded || fail "they did not take turns"
all_done
step "a stuck lock was cleared"

# --- What else the README shows
reads < <(awk '
	/^```/ { fenced = !fenced }
	!fenced && /^    [a-z]/ { sub(/^ +/, ""); sub(/ +#.*/, ""); print }
' "$readme")
# The page goes on until it is interrupted; the demo, which has tests, takes too long.
redlatch() {
	local code=0
	case "$1" in
	demo) "$work/bin/redlatch" "$@" --help >/dev/null ;;
	ui)
		timeout --signal=INT --preserve-status 2 "$work/bin/redlatch" "$@" --addr 127.0.0.1:0 || code=$?
		[ "$code" = 130 ]
		;;
	top) # needs a terminal
		"$work/bin/redlatch" "$@" || code=$?
		[ "$code" = 2 ]
		;;
	*) "$work/bin/redlatch" "$@" ;;
	esac
}
cd go-worker
does "go get $module" 2>>../errors
cd ..
does "go install $module/cmd/redlatch@latest"
does "go run ./cmd/redlatch demo"
does "make test"
# shellcheck disable=SC2016 # the name is that of the script
printf '#!/bin/sh\necho "$0 ran"\n' >job.sh
chmod +x job.sh
cp job.sh report.sh
does "redlatch run --wait 10s nightly-report -- ./report.sh" >ran
hourly="redlatch run --try --conflict-exit-code 0 --at-least 55m hourly -- ./job.sh"
does "$hourly" >>ran
eval "$hourly" >>ran 2>>errors || fail "the second job of the hour is an error"
[ "$(cat ran)" = $'./report.sh ran\n./job.sh ran' ] || fail "jobs ran: $(cat ran)"
cp job.sh crawl.sh
does "redlatch run --permits crawl:5 -- ./crawl.sh" >ran
grep -qx './crawl.sh ran' ran || fail "the command under a permit did not run"
does "redlatch list" >listed
grep -q '^hourly ' listed || fail "the list does not have the lock of the hour"
does "redlatch status hourly" >status
grep -q '^ *owner ' status || fail "status does not say who has the lock of the hour"
does "redlatch ui" >served 2>>errors
grep -q '^http://127' served || fail "the page does not say where it is"
does "redlatch top" >shown 2>>errors
does "redlatch doctor" >examined || fail "doctor finds errors: $(cat examined)"
all_done
step "done"
