#!/usr/bin/env bash
# Prints the section of a version in CHANGELOG.md for the release on GitHub, and fails if it is
# empty: scripts/release-notes.sh v0.2.0.
set -euo pipefail

cd "$(dirname "$0")/.."
awk -v heading="## [${1#v}]" '
	index($0, "## ") == 1 { inside = index($0, heading) == 1; next }
	inside { print; if (NF) some = 1 }
	END { exit !some }
' CHANGELOG.md || {
	echo "release-notes: CHANGELOG.md has no text for $1" >&2
	exit 1
}
