#!/usr/bin/env bash
# Finds, or installs, the browser that test/browser tries the live page in: chromium. Where that
# is impossible it is an error if CI=true, and a warning elsewhere.
#
#   scripts/chromium.sh      prints which browser the tests will use
set -euo pipefail

note() { printf '%s\n' "$*" >&2; }

# show prints the browser. It looks where test/browser does.
show() {
	local name
	for name in chromium chromium-browser google-chrome; do
		if command -v "$name" >/dev/null; then
			"$name" --version
			return
		fi
	done
	return 1
}

# as_root runs a command as root, when that is possible without a password.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >&2
}

show && exit
if command -v apt-get >/dev/null; then
	note "Installing chromium with apt-get."
	# Package lists are refreshed only when those at hand do not do.
	if apt_install || { as_root apt-get update -qq >&2 && apt_install; }; then
		show && exit
	fi
fi
note "THE PAGE IS NOT TRIED IN A BROWSER: there is no chromium here."
note "Install it, for example: sudo apt-get install chromium"
[ "${CI:-}" != true ]
