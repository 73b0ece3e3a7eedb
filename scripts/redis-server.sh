#!/usr/bin/env bash
# Finds, or gets, the servers that the tests run against: Redis, and Valkey beside
# it.
#
#   scripts/redis-server.sh show     print which servers the tests will use; fail when one is missing
#   scripts/redis-server.sh setup    the same, after getting what is missing
#
# redis-server is installed. Valkey is fetched from Debian, unpacked into .servers,
# which git ignores, and not installed; where that is impossible, it is an error if
# CI=true, and a warning elsewhere.
#
# The tests start the programs themselves, on free ports of the loopback
# interface. Nothing here needs a server that already runs, and none is started.
set -euo pipefail

cd "$(dirname "$0")/.."

note() { printf '%s\n' "$*" >&2; }

# find_server prints the path of the program that tests start. It looks where
# internal/test/redistest does: REDLATCH_SERVER, a name or a path, then PATH.
find_server() {
	local name
	if [ -n "${REDLATCH_SERVER:-}" ]; then
		command -v "$REDLATCH_SERVER"
		return
	fi
	for name in redis-server valkey-server; do
		if command -v "$name"; then
			return 0
		fi
	done
	return 1
}

show() {
	local path
	if ! path=$(find_server); then
		note "No Redis server for the tests: neither redis-server nor valkey-server is in PATH."
		note "Install one, or name the program, by name or path, in REDLATCH_SERVER."
		return 1
	fi
	tell "$path"
}

# tell prints a program and its version. Valkey's is a link that picks its mode
# from its name: ask the path as found, not what it points to.
tell() {
	local version
	version=$("$1" --version)
	printf 'Test server: %s (%s)\n' "$1" "$version"
}

# Where Valkey is kept. internal/test/redistest looks there, too.
kept=.servers/valkey

# find_valkey prints the path of the Valkey that tests start.
find_valkey() {
	if [ -n "${REDLATCH_VALKEY:-}" ]; then
		command -v "$REDLATCH_VALKEY"
	elif [ -x "$kept/usr/bin/valkey-server" ]; then
		printf '%s\n' "$kept/usr/bin/valkey-server"
	else
		command -v valkey-server
	fi
}

# as_root runs a command as root when this user can become root without being
# asked for a password.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		sudo -n "$@"
	else
		note "Installing redis-server needs root, and sudo without a password is not possible here."
		note "Run: sudo apt-get install redis-server"
		return 1
	fi
}

# RUNLEVEL=1 tells the package's install script that services are not wanted
# now: the tests need the program, not a server on port 6379.
apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
		apt-get install -y -qq --no-install-recommends redis-server >&2
}

install_server() {
	if command -v apt-get >/dev/null; then
		note "Installing redis-server with apt-get."
		# Package lists are refreshed only when those at hand do not do.
		apt_install || {
			as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
			apt_install
		}
	elif command -v brew >/dev/null; then
		note "Installing redis with brew."
		HOMEBREW_NO_AUTO_UPDATE=1 brew install redis >&2
	else
		note "No redis-server here, and neither apt-get nor brew to install it with."
		note "Install Redis 6.2 or later, or Valkey, and make sure that redis-server is in PATH."
		return 1
	fi
}

setup() {
	if ! find_server >/dev/null; then
		if [ -n "${REDLATCH_SERVER:-}" ]; then
			# Someone asked for a certain server: another one is no answer.
			note "REDLATCH_SERVER=$REDLATCH_SERVER is no program that can be run."
			return 1
		fi
		install_server
	fi
	show
}

# The suites of Debian that have a Valkey 8, the one that runs on the oldest
# systems first.
suites="bookworm-backports trixie"

# keyring prints the path of Debian's keys. Other systems with apt-get have them
# in a package.
keyring() {
	local file
	for file in /usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do
		if [ -f "$file" ]; then
			printf '%s\n' "$file"
			return
		fi
	done
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debian-archive-keyring >&2 || return 1
	find /usr/share/keyrings -name 'debian-archive-keyring.*' | grep . | head -n 1
}

# fetch_valkey unpacks the program of one suite into a folder: the suite, the
# folder, the keys. Lists and packages are its own, so it needs no root and
# changes nothing on the machine.
fetch_valkey() {
	local suite=$1 folder=$2 keys=$3 deb
	mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
	printf 'deb [signed-by=%s] http://deb.debian.org/debian %s main\n' "$keys" "$suite" >"$folder/sources.list"
	local options=(
		-qq
		-o "Dir::Etc::SourceList=$folder/sources.list"
		-o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State::Lists=$folder/lists"
		-o Dir::State::Status=/dev/null # what is installed does not matter
		-o "Dir::Cache=$folder/cache"
		-o APT::Sandbox::User=
		-o Acquire::Retries=1
		-o Acquire::http::Timeout=15
	)
	# What counts is whether the packages come, not what hooks of the machine say.
	apt-get "${options[@]}" update >&2 || true
	(cd "$folder" && apt-get "${options[@]}" download valkey-server valkey-tools >&2) || return 1
	for deb in "$folder"/*.deb; do
		dpkg -x "$deb" "$folder/root" || return 1
	done
	# It may lack a library, or be for a newer system.
	"$folder/root/usr/bin/valkey-server" --version >/dev/null
}

get_valkey() {
	local suite folder keys
	if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
		note "No valkey-server here, and no apt-get and dpkg to get it with."
		return 1
	fi
	keys=$(keyring) || return 1
	for suite in $suites; do
		folder=$(mktemp -d)
		if fetch_valkey "$suite" "$folder" "$keys"; then
			rm -rf "$kept"
			mkdir -p "$(dirname "$kept")"
			mv "$folder/root" "$kept"
			rm -rf "$folder"
			return
		fi
		note "No Valkey for this machine in Debian's $suite."
		rm -rf "$folder"
	done
	return 1
}

show_valkey() {
	local path
	if path=$(find_valkey); then
		tell "$path"
		return
	fi
	note "NOT TESTED WITH VALKEY: there is no valkey-server here."
	note "Install Valkey 8, or name the program, by name or path, in REDLATCH_VALKEY."
	return 1
}

setup_valkey() {
	if [ -z "${REDLATCH_VALKEY:-}" ] && ! find_valkey >/dev/null; then
		get_valkey || true # what follows tells
	fi
	show_valkey && return
	# Someone asked for a certain program, or for everything.
	[ -z "${REDLATCH_VALKEY:-}" ] && [ "${CI:-}" != true ]
}

case "${1:-}" in
show)
	show
	show_valkey
	;;
setup)
	setup
	setup_valkey
	;;
*)
	note "usage: $0 show|setup"
	exit 2
	;;
esac
