#!/usr/bin/env bash
# Prints the section of a version in CHANGELOG.md for the release on GitHub, with links to the files
# of its tag, and fails if it is empty: scripts/release-notes.sh v0.2.0.
set -euo pipefail

cd "$(dirname "$0")/.."
awk -v heading="## [${1#v}]" '
	index($0, "## ") == 1 { inside = index($0, heading) == 1; next }
	inside { print; if (NF) some = 1 }
	END { exit !some }
' CHANGELOG.md | sed -E "s#\]\((docs/|examples|[A-Z]+\.md)#](https://github.com/redlatch/redlatch/blob/$1/\1#g" || {
	echo "release-notes: CHANGELOG.md has no text for $1" >&2
	exit 1
}
