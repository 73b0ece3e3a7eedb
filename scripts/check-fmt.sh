#!/usr/bin/env bash
# Fails when a Go file is not formatted as gofmt would, in nested modules too,
# and when a shell script does not parse (or, where shellcheck is installed,
# does not pass it).
set -euo pipefail

cd "$(dirname "$0")/.."

list() {
	local path
	git -c safe.directory="$PWD" ls-files -z --cached --others --exclude-standard -- "$@" |
		while IFS= read -r -d '' path; do
			# Tracked but deleted is fine.
			if [ -e "$path" ]; then printf '%s\0' "$path"; fi
		done
}

unformatted=$(list '*.go' | xargs -0 -r gofmt -l)
if [ -n "$unformatted" ]; then
	printf 'check-fmt: not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
	exit 1
fi

# Others cannot be part of a module: go get would fail.
odd=$(list | LC_ALL=C grep -zvE '^[A-Za-z0-9._/-]+$' | tr '\0' '\n' || true)
if [ -n "$odd" ]; then
	printf 'check-fmt: files whose names no module can have:\n%q\n' "$odd" >&2
	exit 1
fi

list '*.sh' .ci/run | xargs -0 -r -n 1 bash -n
if command -v shellcheck >/dev/null; then
	list '*.sh' .ci/run | xargs -0 -r shellcheck
else
	echo "check-fmt: shellcheck is not installed, shell scripts were only parsed" >&2
fi
