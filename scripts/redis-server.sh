#!/usr/bin/env bash
# Finds or installs the servers for the tests: Redis and Valkey.
#
#   scripts/redis-server.sh show     print the servers that the tests use; fail if one is missing
#   scripts/redis-server.sh setup    install missing servers first
#
# redis-server is installed. Valkey is downloaded from Debian and unpacked into .servers,
# which git ignores. If that is impossible, the script fails with CI=true and otherwise
# warns.
#
# The tests start the programs on free ports of the loopback interface. This script
# neither needs nor starts a server.
set -euo pipefail

cd "$(dirname "$0")/.."

note() { printf '%s\n' "$*" >&2; }

# find_server prints the path of the tests' server. It searches like
# internal/test/redistest: REDLATCH_SERVER, a name or a path, then PATH.
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
		note "No Redis server for the tests: no redis-server or valkey-server in PATH."
		note "Install one, or set REDLATCH_SERVER to the program's name or path."
		return 1
	fi
	tell "$path"
}

# tell prints a program and its version. Valkey's program selects its mode from the name
# of the link, so don't resolve it.
tell() {
	local version
	version=$("$1" --version)
	printf 'Test server: %s (%s)\n' "$1" "$version"
}

# The folder of Valkey, also known to internal/test/redistest.
kept=.servers/valkey

# find_valkey prints the path of the tests' Valkey.
find_valkey() {
	if [ -n "${REDLATCH_VALKEY:-}" ]; then
		command -v "$REDLATCH_VALKEY"
	elif [ -x "$kept/usr/bin/valkey-server" ]; then
		printf '%s\n' "$kept/usr/bin/valkey-server"
	else
		command -v valkey-server
	fi
}

# as_root runs a command as root if that needs no password.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		sudo -n "$@"
	else
		note "Installing redis-server needs root, and sudo requires a password."
		note "Run: sudo apt-get install redis-server"
		return 1
	fi
}

# With RUNLEVEL=1 the package's install script does not start a server on port 6379.
apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
		apt-get install -o DPkg::Lock::Timeout=300 -y -qq --no-install-recommends redis-server >&2
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
		note "redis-server not found, and no apt-get or brew to install it."
		note "Install Redis 6.2 or later, or Valkey, with redis-server in PATH."
		return 1
	fi
}

setup() {
	if ! find_server >/dev/null; then
		if [ -n "${REDLATCH_SERVER:-}" ]; then
			# Don't replace an explicitly selected server.
			note "REDLATCH_SERVER=$REDLATCH_SERVER is not an executable program."
			return 1
		fi
		install_server
	fi
	show
}

# Debian's suites with Valkey 8, most portable first.
suites="bookworm-backports trixie"

# keyring prints the path of Debian's keys, which other systems have in a package.
keyring() {
	local file
	for file in /usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do
		if [ -f "$file" ]; then
			printf '%s\n' "$file"
			return
		fi
	done
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -o DPkg::Lock::Timeout=300 -y -qq debian-archive-keyring >&2 || return 1
	find /usr/share/keyrings -name 'debian-archive-keyring.*' | grep . | head -n 1
}

# fetch_valkey SUITE FOLDER KEYS unpacks the program of a suite into a folder. It uses
# separate package lists, so it needs no root and does not change the machine.
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
	# Only the download matters, not the status of apt hooks.
	apt-get "${options[@]}" update >&2 || true
	(cd "$folder" && apt-get "${options[@]}" download valkey-server valkey-tools >&2) || return 1
	for deb in "$folder"/*.deb; do
		dpkg -x "$deb" "$folder/root" || return 1
	done
	# A library may be missing, or the program be for a newer system.
	"$folder/root/usr/bin/valkey-server" --version >/dev/null
}

get_valkey() {
	local suite folder keys
	if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
		note "valkey-server not found, and no apt-get and dpkg to download it."
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
		note "No usable Valkey in Debian's $suite."
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
	note "NOT TESTED WITH VALKEY: valkey-server not found."
	note "Install Valkey 8, or set REDLATCH_VALKEY to the program's name or path."
	return 1
}

setup_valkey() {
	if [ -z "${REDLATCH_VALKEY:-}" ] && ! find_valkey >/dev/null; then
		get_valkey || true # what follows tells
	fi
	show_valkey && return
	# Explicitly selected, or required.
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
