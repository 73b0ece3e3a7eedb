#!/usr/bin/env bash
# Builds the Redisson peer (internal/test/peer/java) and resolves the class path of each release
# of Redisson to test with.
#
#   scripts/compat.sh VERSION…     build, and resolve these releases
#   scripts/compat.sh              the releases in REDLATCH_COMPAT_VERSIONS,
#                                  or else the tests' default releases
#
# The output is in internal/test/peer/java/target, which git ignores: classes/, and
# classpath/VERSION.txt with the jars of one release. Up-to-date files are kept, so a second
# run needs no Maven.
set -euo pipefail

cd "$(dirname "$0")/../internal/test/peer/java"

defaults="3.17.7 3.52.0 4.3.1"
target=target

note() { printf '%s\n' "$*" >&2; }

need() {
	command -v "$1" >/dev/null && return
	# Install missing programs only on a CI machine.
	if [ "${CI:-}" = true ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
		note "compat: installing a JDK and Maven, because $1 is missing"
		export DEBIAN_FRONTEND=noninteractive
		local -a install=(apt-get install -o DPkg::Lock::Timeout=300 -y -qq --no-install-recommends default-jdk-headless maven)
		"${install[@]}" >&2 || { apt-get update -qq >&2 && "${install[@]}" >&2; }
		command -v "$1" >/dev/null && return
	fi
	note "compat: $1 not found. The Redisson peer needs Maven and JDK 17 or later:"
	note "  apt-get install default-jdk-headless maven"
	exit 1
}

maven() {
	need mvn
	mvn --quiet --batch-mode --no-transfer-progress -Dstyle.color=never "$@" </dev/null
}

# sum prints a hash of the program's sources.
sum() {
	find pom.xml src -type f -print0 | LC_ALL=C sort -z | xargs -0 cksum | cksum
}

build() {
	local now
	now=$(sum)
	if [ "$now" = "$(cat "$target/classes.sum" 2>/dev/null)" ]; then
		return
	fi
	need javac
	# A changed pom.xml may mean other jars.
	rm -rf "$target/classes" "$target/classpath"
	maven compile
	printf '%s\n' "$now" >"$target/classes.sum"
}

# jars_exist reports whether the file $1 lists jars and all of them exist.
jars_exist() {
	local jar
	[ -s "$1" ] || return 1
	while read -r jar; do
		[ -f "$jar" ] || return 1
	done < <(tr ':' '\n' <"$1")
}

resolve() {
	local version=$1 file=$target/classpath/$1.txt
	if jars_exist "$file"; then
		return
	fi
	mkdir -p "$target/classpath"
	maven dependency:build-classpath "-Dredisson.version=$version" "-Dmdep.outputFile=$file.new"
	# Atomically.
	{ cat "$file.new" && echo; } >"$file.tmp"
	rm "$file.new"
	mv "$file.tmp" "$file"
}

read -r -a versions <<<"${*:-${REDLATCH_COMPAT_VERSIONS:-$defaults}}"
need java
build
for version in "${versions[@]}"; do
	resolve "$version"
done
printf 'Redisson peer: built, with releases %s\n' "${versions[*]}"
