#!/usr/bin/env bash
# Builds the release tools, at the versions of tools/packages/go.mod, into bin/tools, and prints
# that folder: goreleaser, and cyclonedx-gomod for SBOMs.
#
# goreleaser is built without optimizations, which saves a third of the build time. cyclonedx-gomod
# writes its own hash into SBOMs, so its build must be reproducible.
set -euo pipefail

cd "$(dirname "$0")/.."
out=$PWD/bin/tools
mkdir -p "$out"
cd tools/packages
go build -gcflags='all=-N -l -dwarf=false' -ldflags='-s -w' -o "$out/" github.com/goreleaser/goreleaser/v2
go build -trimpath -ldflags='-s -w -buildid=' -o "$out/" github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
echo "$out"
