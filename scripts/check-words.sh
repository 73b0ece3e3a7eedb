#!/usr/bin/env bash
# Fails when a file of the repository contains what must not be published or
# left behind: paths of one person's machine, names of package mirrors, and
# markers of unfinished work. The patterns are written so that this file does
# not match them.
set -euo pipefail

cd "$(dirname "$0")/.."

patterns=(
	# Places that exist on one machine only.
	'(^|[^[:alnum:]._-])/wor[k]/'
	'/tmp/bas[h]_jobs'
	# Hosts that a build is configured with, not hosts that a source names.
	'prox[y]\.golang\.org'
	'repo1\.mave[n]\.org'
	'registr[y]\.npmjs\.org'
	# Unfinished work belongs in the issue tracker.
	'\b(TOD[O]|FIXM[E]|XX[X])\b'
)

# Checksum files are left out: their base64 may spell anything. So are files
# that are tracked but deleted.
files=()
while IFS= read -r -d '' file; do
	if [ -f "$file" ]; then files+=("$file"); fi
done < <(git -c safe.directory="$PWD" ls-files -z --cached --others --exclude-standard -- . ':!:*go.sum')

# A list that could not be had must not pass for a clean one.
if [ "${#files[@]}" -eq 0 ]; then
	echo "check-words: git lists no files here" >&2
	exit 2
fi

# The lines found decide, not grep's status, which xargs folds into one of its own.
found=$(for pattern in "${patterns[@]}"; do
	printf '%s\0' "${files[@]}" | xargs -0 grep -InHE -e "$pattern" -- || true
done)

if [ -n "$found" ]; then
	printf '%s\n' "$found" >&2
	echo "check-words: the lines above contain words that must not be in the repository" >&2
	exit 1
fi

# The tag of an action can be moved, its hash cannot.
if grep -nHE '\buses:' .github/workflows/* | grep -vE '@[0-9a-f]{40} # v'; then
	echo "check-words: pin the actions above by the hash of their commit" >&2
	exit 1
fi
