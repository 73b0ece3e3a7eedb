#!/usr/bin/env bash
# Writes the other files of a release into bin/package, which git ignores: man pages, completions,
# changelogs, the licences of the modules in the program, and the certificates of the image.
# goreleaser runs it before the build: see .goreleaser.yaml.
#
#   scripts/package-files.sh VERSION DATE      for example 1.2.3 and the commit's time in RFC 3339
set -euo pipefail

cd "$(dirname "$0")/.."
version=$1
date=$2
out=bin/package
maintainer='Redlatch maintainers <redlatch@users.noreply.github.com>'
export LC_ALL=C

rm -rf "$out"
mkdir -p "$out"

go run ./cmd/redlatch __manual --date "$date" --of-version "v$version" "$out"

# packed compresses a file without its name and time, as Debian requires.
packed() { gzip -9 -n <"$1" >"$out/$2"; }
packed CHANGELOG.md changelog.gz

# The changelog of the packages, which nfpm converts for each format.
cat >"$out/changelog.yaml" <<EOF
- semver: $version
  date: $date
  packager: $maintainer
  deb: {urgency: medium, distributions: [stable]}
  changes:
    - note: "Release $version: /usr/share/doc/redlatch has its changelog"
EOF

# The licence of each third-party module on any system. A missing licence is an error.
for system in linux darwin windows; do
	GOOS=$system go list -C cmd/redlatch/full -deps -f '{{with .Module}}{{if not (or .Main .Replace)}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' .
done | sort -u >"$out/modules"
{
	cat <<-'EOF'
		redlatch contains the standard library of Go and these modules. Each has its own licence.
	EOF
	printf '\n==== The Go standard library\n\n'
	cat "$(go env GOROOT)/LICENSE"
	while read -r module of folder; do
		printf '\n==== %s %s\n\n' "$module" "$of"
		cat "$folder"/LICENSE*
		if [ -e "$folder/NOTICE" ]; then cat "$folder/NOTICE"; fi
	done <"$out/modules"
} >"$out/THIRD-PARTY-LICENSES"
rm "$out/modules"
packed "$out/THIRD-PARTY-LICENSES" THIRD-PARTY-LICENSES.gz

# The build system's certificates: the image's base has none.
for certificates in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
	if [ -e "$certificates" ]; then
		cp "$certificates" "$out/ca-certificates.crt"
		exit
	fi
done
echo "package-files: no certificates found for the image" >&2
