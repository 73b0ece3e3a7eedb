#!/usr/bin/env bash
# Fails if a file of the repository contains local paths, names of package mirrors, or
# markers of unfinished work. The patterns are written so that this file does not match
# them.
set -euo pipefail

cd "$(dirname "$0")/.."

patterns=(
	# Local paths.
	'(^|[^[:alnum:]._-])/wor[k]/'
	'/tmp/bas[h]_jobs'
	# Hosts of build configurations, not of sources.
	'prox[y]\.golang\.org'
	'repo1\.mave[n]\.org'
	'registr[y]\.npmjs\.org'
	# Unfinished work belongs in the issue tracker.
	'\b(TOD[O]|FIXM[E]|XX[X])\b'
)

# Skip checksum files, whose base64 may match, and deleted files.
files=()
while IFS= read -r -d '' file; do
	if [ -f "$file" ]; then files+=("$file"); fi
done < <(git -c safe.directory="$PWD" ls-files -z --cached --others --exclude-standard -- . ':!:*go.sum')

# A failed listing must not pass as clean.
if [ "${#files[@]}" -eq 0 ]; then
	echo "check-words: git lists no files here" >&2
	exit 2
fi

# Use the output, because xargs changes grep's exit status.
found=$(for pattern in "${patterns[@]}"; do
	printf '%s\0' "${files[@]}" | xargs -0 grep -InHE -e "$pattern" -- || true
done)

if [ -n "$found" ]; then
	printf '%s\n' "$found" >&2
	echo "check-words: the lines above contain words that must not be in the repository" >&2
	exit 1
fi

# A tag of an action can be moved, a hash cannot.
if grep -nHE '\buses:' .github/workflows/* | grep -vE '@[0-9a-f]{40} # v'; then
	echo "check-words: pin the actions above by the hash of their commit" >&2
	exit 1
fi
