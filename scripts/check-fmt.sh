#!/usr/bin/env bash
# Fails if a Go file, also of a nested module, is not gofmt'ed, or if a shell script does
# not parse or, with shellcheck installed, does not pass it.
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

# go get rejects modules with other names.
odd=$(list | LC_ALL=C grep -zvE '^[A-Za-z0-9._/-]+$' | tr '\0' '\n' || true)
if [ -n "$odd" ]; then
	printf 'check-fmt: invalid file names in a module:\n%q\n' "$odd" >&2
	exit 1
fi

list '*.sh' .ci/run | xargs -0 -r -n 1 bash -n
if command -v shellcheck >/dev/null; then
	list '*.sh' .ci/run | xargs -0 -r shellcheck
else
	echo "check-fmt: shell scripts were only parsed: shellcheck is not installed" >&2
fi
