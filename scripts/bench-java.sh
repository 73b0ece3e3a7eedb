#!/usr/bin/env bash
# Builds the Java contestant of the benchmark, bench/java, and prints its class path.
# Without a JDK or Maven it warns on stderr, prints nothing and succeeds: the benchmark
# runs without Redisson.
set -euo pipefail

cd "$(dirname "$0")/.."

release=${REDISSON:-4.3.1}
target=bench/java/target

if ! command -v javac >/dev/null || ! command -v mvn >/dev/null; then
	echo "bench: no JDK or Maven: running without Redisson" >&2
	exit 0
fi

# The peer of the tests has resolved the release's jars.
scripts/compat.sh "$release" >&2
jars=$(cat "internal/test/peer/java/target/classpath/$release.txt")

mkdir -p "$target/classes"
find bench/java/src -name '*.java' -print0 |
	xargs -0 javac --release 17 -Xlint:all,-processing -proc:none -d "$target/classes" -cp "$jars" >&2
printf '%s:%s\n' "$PWD/$target/classes" "$jars"
