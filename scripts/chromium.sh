#!/usr/bin/env bash
# Finds or installs chromium for test/browser. If that is impossible, it fails with CI=true and
# otherwise warns.
#
#   scripts/chromium.sh      prints the browser that the tests use
set -euo pipefail

note() { printf '%s\n' "$*" >&2; }

# show prints the browser. It searches like test/browser.
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

# as_root runs a command as root if that needs no password.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -o DPkg::Lock::Timeout=300 -y -qq --no-install-recommends chromium >&2
}

show && exit
if command -v apt-get >/dev/null; then
	note "Installing chromium with apt-get."
	# Package lists are refreshed only when those at hand do not do.
	if apt_install || { as_root apt-get update -qq >&2 && apt_install; }; then
		show && exit
	fi
fi
note "PAGE NOT TESTED IN A BROWSER: chromium not found."
note "To install it: sudo apt-get install chromium"
[ "${CI:-}" != true ]
