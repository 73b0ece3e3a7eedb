#!/usr/bin/env bash
# Builds what makes releases, at the versions of tools/packages/go.mod, into bin/tools, and prints
# that folder: goreleaser, and cyclonedx-gomod for the lists of what is in a program.
#
# goreleaser is big: without the optimizations of the compiler, which a few seconds of work do not
# need, it is built in two thirds of the time. The other one names its own hash in what it writes, so
# it is built alike everywhere.
set -euo pipefail

cd "$(dirname "$0")/.."
out=$PWD/bin/tools
mkdir -p "$out"
cd tools/packages
go build -gcflags='all=-N -l -dwarf=false' -ldflags='-s -w' -o "$out/" github.com/goreleaser/goreleaser/v2
go build -trimpath -ldflags='-s -w -buildid=' -o "$out/" github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
echo "$out"
