#!/usr/bin/env bash
# Makes a trial release of the tree and tests it: builds everything in .goreleaser.yaml twice, in two
# folders, and compares the results; checks the packages; installs the Debian package into a
# temporary root; checks its manual and completions; and runs docs/quickstart.md with its program.
# The last lines list skipped checks.
#
#   scripts/package-check.sh         only for this system (Linux)
#   scripts/package-check.sh all     for all systems; the Debian package of this one is installed
set -Eeuo pipefail

cd "$(dirname "$0")/.."
checkout=$PWD
targets=${1:-one}
version=0.0.1
arch=$(go env GOARCH)
# Settings for this checkout must not leak into the release.
export GOFLAGS='' GOWORK=off

work=$(mktemp -d)
root=$work/root
as_root=() # what dpkg wants to be
if [ "$(id -u)" != 0 ]; then as_root=(sudo -n); fi
walk= # the process that does what docs/quickstart.md says
# Stop only the processes started here.
cleanup() {
	if [ -n "$walk" ]; then
		kill "$walk" 2>/dev/null || true
		wait "$walk" 2>/dev/null || true
	fi
	"${as_root[@]}" rm -rf "$work"
}
trap cleanup EXIT

step() { printf 'package-check: %3d s  %s\n' "$SECONDS" "$*"; }
fail() {
	printf 'package-check: %s\n' "$*" >&2
	exit 1
}
trap 'fail "line $LINENO has failed"' ERR

left=()
# has reports whether a program is installed, or notes the skipped check.
has() {
	command -v "$1" >/dev/null && return
	left+=("$2: there is no $1 here")
	return 1
}

# same NAME GOT WANT fails unless two lists are the same.
same() {
	diff <(sort <<<"$2") <(sort <<<"$3") >&2 || fail "$1 has files (<) that differ from the expected ones (>)"
}

# --- The release

# tagged creates a repository of the tree in a folder, with the tags of a release.
tagged() {
	local git=(git -c "safe.directory=$checkout") tag
	GIT_COMMITTER_DATE=$("${git[@]}" log -1 --format=%cI)
	export GIT_COMMITTER_DATE GIT_AUTHOR_DATE=$GIT_COMMITTER_DATE
	git init -q "$1"
	"${git[@]}" ls-files -z --cached --others --exclude-standard |
		while IFS= read -r -d '' file; do if [ -e "$file" ]; then printf '%s\0' "$file"; fi; done |
		tar --create --null --files-from=- | tar --extract --directory "$1"
	cd "$1"
	# As the release tool does; the program has its version from here.
	go mod edit -require="github.com/redlatch/redlatch@v$version" cmd/redlatch/full/go.mod
	git remote add origin https://github.com/redlatch/redlatch # goreleaser reads it
	git config user.name trial
	git config user.email trial@localhost
	git add --all
	git commit -q -m "a release on trial"
	# A release also has tags of modules; goreleaser gets the program's.
	for tag in "adapter/goredis/v$version" "v$version"; do git tag -a -m "$tag" "$tag"; done
	cd "$checkout"
}

# released runs goreleaser in a repository, without the steps that need a registry or an identity.
released() {
	cd "$1"
	cp .goreleaser.yaml "$work/goreleaser.yaml"
	if [ "$targets" != all ]; then
		sed -i "s/^    goos: .*/    goos: [linux]/; s/^    goarch: .*/    goarch: [$arch]/" "$work/goreleaser.yaml"
	fi
	GORELEASER_CURRENT_TAG=v$version goreleaser release --clean --config "$work/goreleaser.yaml" \
		--skip=publish,announce,docker,sign >"$work/said" 2>&1 || fail "goreleaser: $(cat "$work/said")"
	[ -z "$(git status --porcelain)" ] || fail "the build changes the tree: $(git status --porcelain)"
	cd "$checkout"
}

tools=$(scripts/package-tools.sh)
PATH=$tools:$PATH
step "the tools are built"
goreleaser check >"$work/said" 2>&1 || fail "goreleaser check: $(cat "$work/said")"
tagged "$work/first"
released "$work/first"
dist=$work/first/dist
step "a release is built"

program=$(echo "$dist/redlatch_linux_$arch"*/redlatch)
deb=$dist/redlatch_$version-1_$arch.deb

# --- The installed program

if ! has dpkg-deb "DEBIAN PACKAGE NOT TESTED"; then
	printf 'package-check: %s\n' "${left[@]}"
	[ "${CI:-}" != true ]
	exit
fi
# dpkg writes into a temporary folder, including the manuals that container images exclude.
mkdir -p "$root/var/lib/dpkg/"{info,updates}
touch "$root/var/lib/dpkg/"{status,available}
"${as_root[@]}" dpkg --root="$root" --path-include='*' --install "$deb" >"$work/said" 2>&1 || fail "dpkg: $(cat "$work/said")"
redlatch=$root/usr/bin/redlatch
[ "$("$redlatch" --version)" = "redlatch v$version ($(git -C "$work/first" rev-parse --short=12 HEAD)) $(go env GOVERSION)" ] ||
	fail "wrong version: $("$redlatch" --version)"
ldd "$redlatch" >"$work/said" 2>&1 && fail "the program needs libraries: $(cat "$work/said")"
# It mostly waits, so run it in the background.
REDLATCH_INSTALLED=$redlatch scripts/newcomer.sh >"$work/walked" 2>&1 &
walk=$!
step "the Debian package is installed"

# --- The same again

# A different folder, time zone and umask.
(
	umask 077
	git clone -q "$work/first" "$work/other/folder"
	TZ=Asia/Kolkata released "$work/other/folder"
)
while read -r file; do
	cmp "$dist/$file" "$work/other/folder/dist/$file" || fail "two builds of $file differ"
done < <(cd "$dist" && echo checksums.txt && awk '{ print $2 }' checksums.txt)
(cd "$dist" && sha256sum --quiet --check checksums.txt)
step "a second build has the same bytes"

# --- What is in it

mapfile -t pages < <(cd "$work/first/bin/package/man" && printf '%s\n' *.1.gz)

# Each command must have a page: the names come from the help, not from the generator.
listed() { "$program" "$@" --help | sed -n '/^Available Commands:/,/^Flags:/s/^  \([a-z]*\) .*/\1/p' | grep -vxE 'help|completion'; }
mapfile -t commands < <(listed && listed context | sed 's/^/context-/')
same "the manual" "$(printf '%s\n' "${pages[@]}")" "$(echo redlatch.1.gz && printf 'redlatch-%s.1.gz\n' "${commands[@]}")"

# packed lists the expected files of a package: the common ones and its arguments.
packed() {
	printf '/usr/share/%s\n' bash-completion/completions/redlatch fish/vendor_completions.d/redlatch.fish \
		doc/redlatch/{changelog.gz,THIRD-PARTY-LICENSES.gz} "$@"
	printf '/usr/share/man/man1/%s\n' "${pages[@]}"
	echo /usr/bin/redlatch
}
for file in "$dist"/*.tar.gz; do
	same "$file" "$(tar tzf "$file" | sed 's,^[^/]*/,,')" "$(
		printf '%s\n' redlatch LICENSE CHANGELOG.md THIRD-PARTY-LICENSES completions/{_redlatch,redlatch.bash,redlatch.fish}
		printf 'man/%s\n' "${pages[@]}"
	)"
done
for file in "$dist"/*.apk; do
	same "$file" "$(tar tzf "$file" 2>/dev/null | grep -v '/$' | sed '/^\./d; s,^,/,')" \
		"$(packed licenses/redlatch/LICENSE zsh/site-functions/_redlatch)"
done
if has rpm "the RPM packages are not listed"; then
	for file in "$dist"/*.rpm; do
		same "$file" "$(rpm --query --list --package "$file" 2>/dev/null)" "$(packed licenses/redlatch/LICENSE zsh/site-functions/_redlatch)"
	done
fi
for file in "$dist"/*.cdx.json; do
	grep -q '"bomFormat": "CycloneDX"' "$file" || fail "$file is not a CycloneDX SBOM"
done
go version -m "$program" | awk '$1 == "dep" { print $2 "@" $3 }' | while read -r module; do
	grep -qF "pkg:golang/$module?" "$dist/redlatch_${version}_linux_$arch.cdx.json" || fail "the SBOM lacks $module"
	[ "$module" = "github.com/redlatch/redlatch@v$version" ] ||
		grep -qxF "==== ${module/@/ }" "$work/first/bin/package/THIRD-PARTY-LICENSES" || fail "the licence of $module is missing"
done

# --- The Debian package

[ "$(dpkg-deb --field "$deb" Package Version Architecture Maintainer | wc -l)" = 4 ] || fail "the package lacks fields"
same "$deb" "$(dpkg-deb --fsys-tarfile "$deb" | tar t | grep -v '/$' | sed 's,^\.,,')" \
	"$(packed doc/redlatch/{copyright,changelog.Debian.gz} zsh/vendor-completions/_redlatch lintian/overrides/redlatch)"
if dpkg-deb --fsys-tarfile "$deb" | tar tv --numeric-owner | grep -vE '^(-rw-r--r--|drwxr-xr-x) (root|0)/(root|0) |^-rwxr-xr-x .* \./usr/bin/redlatch$'; then
	fail "wrong permissions of the files above"
fi
# Debian 12's dpkg does not know goreleaser's field for newer processors.
if has lintian "the Debian package is not examined by lintian"; then
	lintian --allow-root --fail-on error,warning --suppress-tags unknown-field "$deb" >"$work/said" 2>&1 || fail "lintian: $(cat "$work/said")"
fi
step "the packages have what they should"

# --- Its manual and completions

export MANPATH=$root/usr/share/man MANWIDTH=80 MANPAGER=cat LC_ALL=C.UTF-8
if has man "the manual is not read"; then
	man redlatch >"$work/page"
	grep -q '^SYNOPSIS' "$work/page" || fail "man redlatch shows: $(head "$work/page")"
	for command in "${commands[@]}"; do
		man redlatch "$command" >"$work/page" 2>"$work/said"
		[ ! -s "$work/said" ] || fail "man redlatch $command: $(cat "$work/said")"
		read -ra words <<<"${command//-/ }"
		for flag in $("$redlatch" "${words[@]}" --help | grep -oE '^ +(-., )?--[a-z0-9-]+' | grep -oE -- '--.*'); do
			grep -qE -- "^ +(-., )?$flag( |\$)" "$work/page" || fail "man redlatch $command lacks $flag"
		done
	done
	for page in "$MANPATH"/man1/*; do
		lexgrog "$page" >"$work/said" || fail "apropos cannot read $page"
		man --warnings --local-file "$page" >/dev/null 2>"$work/said"
		[ ! -s "$work/said" ] || fail "$page: $(cat "$work/said")"
	done
fi
if has mandoc "the manual is not read by mandoc"; then
	for page in "$MANPATH"/man1/*; do
		zcat "$page" | mandoc -T lint -W warning >"$work/said" || fail "$page: $(cat "$work/said")"
	done
fi

# Stubs for the functions of the package bash-completion.
completed=$(PATH=$root/usr/bin:$PATH bash -c '
	_init_completion() { words=("${COMP_WORDS[@]}") cword=$COMP_CWORD cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}; }
	source "$1"
	complete -p redlatch >/dev/null
	COMP_WORDS=(redlatch stat) COMP_CWORD=1 COMP_LINE="redlatch stat" COMP_POINT=13 COMP_TYPE=9
	__start_redlatch 2>/dev/null # compopt is for a shell with a keyboard
	echo "${COMPREPLY[@]}"' bash "$root/usr/share/bash-completion/completions/redlatch")
[ "${completed% *}" = status ] || [ "$completed" = status ] || fail "bash completes redlatch stat with: $completed"
if has zsh "zsh does not read its completions"; then zsh -n "$root/usr/share/zsh/vendor-completions/_redlatch"; fi
if has fish "fish does not read its completions"; then fish --no-execute "$root/usr/share/fish/vendor_completions.d/redlatch.fish"; fi
step "the manual is readable, and bash completes commands"

# --- The image

# The files that goreleaser passes to docker.
context=$work/context
mkdir -p "$context/linux/$arch"
cp "$program" "$context/linux/$arch/"
(cd "$work/first" && cp --parents deploy/package/{Dockerfile,passwd} bin/package/{ca-certificates.crt,THIRD-PARTY-LICENSES} LICENSE "$context/")
image=redlatch-package-check:$$
if docker info >/dev/null 2>&1; then
	docker build --quiet --file "$context/deploy/package/Dockerfile" --build-arg "TARGETPLATFORM=linux/$arch" --tag "$image" "$context" >/dev/null
	says=$(docker run --rm "$image" --version)
	user=$(docker inspect --format '{{.Config.User}}' "$image")
	docker rmi "$image" >/dev/null
	[ "$says, $user" = "$("$redlatch" --version), 65532:65532" ] || fail "the image prints, as user $user: $says"
	step "the image runs"
else
	left+=("the image is not built: docker has no daemon here")
fi
left+=("nothing is signed, attested or published: that needs the identity of .github/workflows/release.yml")

# --- The quickstart, with the installed program

wait "$walk" || fail "$(cat "$work/walked")"
walk=
cat "$work/walked"
"${as_root[@]}" dpkg --root="$root" --remove redlatch >/dev/null 2>&1
[ -z "$(find "$root/usr" ! -type d 2>/dev/null)" ] || fail "dpkg leaves files: $(find "$root/usr" ! -type d)"
step "done. What is not done here:"
printf 'package-check:        %s\n' "${left[@]}"
