#!/usr/bin/env bash
# Finds, or installs, the Redis server that the tests run against.
#
#   scripts/redis-server.sh show     print which server the tests will use; fail when there is none
#   scripts/redis-server.sh setup    the same, after installing redis-server where it is missing
#
# The tests start the program themselves, on free ports of the loopback
# interface. Nothing here needs a server that already runs, and none is started.
set -euo pipefail

note() { printf '%s\n' "$*" >&2; }

# find_server prints the path of the program that tests start. It looks where
# internal/redistest does: REDLATCH_SERVER, a name or a path, then PATH.
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
	local path version
	if ! path=$(find_server); then
		note "No Redis server for the tests: neither redis-server nor valkey-server is in PATH."
		note "Install one, or name the program, by name or path, in REDLATCH_SERVER."
		return 1
	fi
	# Valkey's program is a link that picks its mode from its name: ask the
	# path as found, not what it points to.
	version=$("$path" --version)
	printf 'Test server: %s (%s)\n' "$path" "$version"
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
		note "Install Redis 6 or later, or Valkey, and make sure that redis-server is in PATH."
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

case "${1:-}" in
show) show ;;
setup) setup ;;
*)
	note "usage: $0 show|setup"
	exit 2
	;;
esac
