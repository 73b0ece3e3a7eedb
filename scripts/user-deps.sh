#!/usr/bin/env bash
# Checks the dependencies of users: builds a module that imports the client and all
# kinds of lock from this checkout, and fails if
#   - packages from other modules than redigo and uuid are compiled into it,
#   - its go.mod, go.sum or build list has modules that only a nested module needs (the build
#     list includes the library's go.mod, even without checksums in go.sum), or
#   - its go.sum has more than 40 lines.
# Needs no network once the modules are cached.
set -euo pipefail

cd "$(dirname "$0")/.."
checkout=$PWD
module=github.com/redlatch/redlatch
allowed='github.com/gomodule/redigo github.com/google/uuid'
max_sum_lines=40
# Modules for adapters and tests in nested modules only.
nested='github\.com/gdamore/ github\.com/go-co-op/ github\.com/redis/go-redis github\.com/redis/rueidis github\.com/testcontainers/ github\.com/moby/ github\.com/docker/ github\.com/prometheus/ go\.opentelemetry\.io/otel/sdk'

fail() {
	printf 'user-deps: %s\n' "$*" >&2
	exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/go.mod" <<EOF
module example.com/user

go $(go list -m -f '{{.GoVersion}}')

require $module v0.0.0

replace $module => $checkout
EOF

cat >"$work/main.go" <<EOF
// Program user takes one lock of each kind.
package main

import (
	"context"
	"fmt"
	"os"

	"$module"
	"$module/fence"
	"$module/rfairlock"
	"$module/rfencedlock"
	"$module/rlock"
)

func main() {
	ctx := context.Background()
	client, err := redlatch.Open(ctx, "redis://localhost:6379")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer client.Close()
	lock := rlock.New(client, "orders:42")
	fair := rfairlock.New(client, "billing-run")
	fenced := rfencedlock.New(client, "orders:43")
	if err := lock.Do(ctx, func(ctx context.Context) error {
		return fair.Do(ctx, func(context.Context) error {
			return fenced.Do(ctx, func(context.Context, *rfencedlock.Hold) error { return fence.ErrLate })
		})
	}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
EOF

# Start with this checkout's checksums, so tidy need not look them up; it removes the
# unneeded ones.
cp go.sum "$work/go.sum"

cd "$work"
# Settings for this checkout must not leak into the user's module.
export GOFLAGS=-buildvcs=false GOWORK=off
go mod tidy
go build -o user .

go list -deps -f '{{with .Module}}{{.Path}}{{end}}' . | sort -u |
	grep -vxE "example\.com/user|$module" >modules || true
go list -deps -f '{{if not .Standard}}{{.ImportPath}}{{end}}' . | grep -v '^example\.com/' >packages
go list -m all >build-list
sum_lines=$(wc -l <go.sum)
own=$(grep -c "^$module\(/\|\$\)" packages || true)
others=$(grep -vc "^$module\(/\|\$\)" packages || true)

printf 'A program that imports redlatch, rlock, rfairlock, rfencedlock and fence compiles %d packages of ours and %d of others, from:\n' "$own" "$others"
while read -r m; do
	printf '  %s\n' "$(go list -m "$m")"
done <modules
printf 'Its go.sum has %d lines (at most %d), its build list %d modules, the program %d KiB.\n' \
	"$((sum_lines))" "$max_sum_lines" "$(($(wc -l <build-list)))" "$(($(wc -c <user) / 1024))"

[ "$own" -ge 2 ] || fail "the program did not import the library"
if grep -E "^$module/(internal/test|internal/tool|test)(/|\$)" packages >&2; then
	fail "users' programs must not compile the packages above"
fi
while read -r m; do
	case " $allowed " in
	*" $m "*) ;;
	*) fail "module $m is compiled into users' programs; only $allowed may be" ;;
	esac
done <modules
for pattern in $nested; do
	if grep -E "$pattern" go.mod go.sum build-list >&2; then
		fail "users' modules must not have the line above, which only a nested module needs"
	fi
done
# Guards against outdated patterns.
for pattern in $nested; do
	grep -qE "$pattern" "$checkout"/adapter/*/go.sum "$checkout"/cmd/redlatch/full/go.sum "$checkout"/test/containers/go.sum "$checkout"/{gocron,otel,prom}redlatch/go.sum ||
		fail "no nested module has $pattern"
done
[ "$sum_lines" -le "$max_sum_lines" ] || fail "go.sum has $sum_lines lines, more than $max_sum_lines"
