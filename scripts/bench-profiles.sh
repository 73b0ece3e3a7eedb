#!/usr/bin/env bash
# Where the time of the clients goes in the cases of `make bench` that decide: one text for each
# case, place and size, with the functions that take most of each client's processor time.
#
#   scripts/bench-profiles.sh FOLDER [flags of bin/bench run, such as -scale 0.3]
set -euo pipefail

cd "$(dirname "$0")/.."
out=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd bench && go build -o ../bin/bench .)
bin/bench run -rounds 2 -levels 1000 -what '^(a|b|d|g|h)$' \
	-who '^(redlatch(-fair|-rw)?|redislock|rueidislock|redsync-redigo|raw-pipelined)$' \
	-profiles "$work/profiles" -out "$work/results" "$@"
mkdir -p "$out"
rm -f "$out"/*.txt

# Of case-place-size-client-round.party.pprof all rounds and parties are one profile.
for what in $(cd "$work/profiles" && printf '%s\n' *.pprof | sed -E 's/-[0-9]+\.[0-9]+\.pprof$//' | sort -u); do
	text=$out/$(sed -E 's/^(.*-[0-9]+)-[a-z].*/\1/' <<<"$what").txt
	client=$(sed -E 's/^.*-[0-9]+-([a-z].*)/\1/' <<<"$what")
	[ -e "$text" ] || echo "commit $(git rev-parse --short=12 HEAD), $(date -u +%F), scripts/bench-profiles.sh" >"$text"
	{
		printf '\n== %s\n' "$client"
		go tool pprof -top -nodecount=20 "$work/profiles/$what"-[0-9]*.pprof 2>/dev/null | sed -n '/^Duration/p; /^Showing/,$p'
	} >>"$text"
done
ls "$out"
