package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"
)

func (r *repo) checkAPI(w io.Writer, last, version string) error {
	if last == "" {
		return nil
	}
	c, err := r.compare(w, last)
	if err != nil {
		return err
	}
	if !fits(last, version, c) {
		return fmt.Errorf("the API changes since %s need at least %s", last, least(last, c))
	}
	return nil
}

// printAPI prints the changes since a revision, or since the last tag.
func printAPI(w io.Writer, folder, since string) error {
	r, err := open(folder)
	if err != nil {
		return err
	}
	last, err := r.lastTag()
	if err != nil {
		return err
	}
	if since == "" {
		since = last
	}
	if since == "" {
		_, err = fmt.Fprintln(w, "No tag yet: any change is allowed.")
		return err
	}
	c, err := r.compare(w, since)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "The next version after %s must be at least %s.\n", orNothing(last), least(last, c))
	return err
}

// compare prints the API changes and returns their extent.
func (r *repo) compare(w io.Writer, revision string) (change, error) {
	folder, err := os.MkdirTemp("", "release")
	if err != nil {
		return nothing, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := r.extract(revision, folder); err != nil {
		return nothing, err
	}
	before, err := modulesIn(folder)
	if err != nil {
		return nothing, err
	}
	most := nothing
	for _, m := range before {
		if !m.published() {
			continue
		}
		changes, err := r.changes(m, folder)
		if err != nil {
			return nothing, fmt.Errorf("%s: %w", m.path(), err)
		}
		for _, c := range changes {
			kind, how := added, "new"
			if !c.Compatible {
				kind, how = broken, "BREAKS"
			}
			most = max(most, kind)
			_, _ = fmt.Fprintf(w, "  %-6s %s: %s\n", how, m.path(), c.Message)
		}
	}
	return most, nil
}

func (r *repo) changes(m module, before string) ([]apidiff.Change, error) {
	if !slices.ContainsFunc(r.modules, func(other module) bool { return other.path() == m.path() }) {
		return []apidiff.Change{{Message: "module removed"}}, nil
	}
	older, err := load(filepath.Join(before, m.folder), m.path())
	if err != nil {
		return nil, err
	}
	newer, err := load(filepath.Join(r.root, m.folder), m.path())
	if err != nil {
		return nil, err
	}
	return apidiff.ModuleChanges(older, newer).Changes, nil
}

func load(folder, path string) (*apidiff.Module, error) {
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedTypes,
		Dir:  folder,
		Env:  append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod"),
	}
	loaded, err := packages.Load(config, "./...")
	if err != nil {
		return nil, err
	}
	all := &apidiff.Module{Path: path}
	programs := 0
	for _, p := range loaded {
		if p.Name == "main" {
			programs++
			continue
		}
		if !public(strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, path), "/")) {
			continue
		}
		for _, e := range p.Errors {
			err = errors.Join(err, e)
		}
		all.Packages = append(all.Packages, p.Types)
	}
	if err == nil && len(all.Packages)+programs == 0 {
		err = errors.New("no package found")
	}
	return all, err
}

func (r *repo) extract(revision, folder string) error {
	archive := filepath.Join(folder, ".tar")
	if _, err := r.git("archive", "--output", archive, revision); err != nil {
		return err
	}
	out, err := exec.Command("tar", "-x", "-C", folder, "-f", archive).CombinedOutput() //nolint:gosec,noctx // the program chose the folders
	if err != nil {
		return fmt.Errorf("tar: %w: %s", err, out)
	}
	return os.Remove(archive)
}

func (r *repo) checkVersion(last, version string) error {
	switch {
	case !semver.IsValid(version) || semver.Canonical(version) != version:
		return fmt.Errorf("invalid version %q: want vMAJOR.MINOR.PATCH", version)
	case semver.Major(version) != "v0" && semver.Major(version) != "v1":
		return fmt.Errorf("%s needs module paths that end with /%s", version, semver.Major(version))
	case last != "" && semver.Compare(version, last) <= 0:
		return fmt.Errorf("version %s is not higher than %s", version, last)
	}
	for _, m := range r.published() {
		tag := m.tag(version)
		if out, err := r.git("tag", "--list", tag); err != nil || out != "" {
			return fmt.Errorf("tag %s exists (%w)", tag, err)
		}
	}
	return nil
}

type change int

const (
	nothing change = iota
	added
	broken
)

// least returns the smallest version after last that allows c.
func least(last string, c change) string {
	if last == "" {
		return "v0.1.0"
	}
	var major, minor, patch int
	if _, err := fmt.Sscanf(last, "v%d.%d.%d", &major, &minor, &patch); err != nil {
		panic(err)
	}
	switch {
	case c == broken && major > 0:
		return fmt.Sprintf("v%d.0.0", major+1)
	case c != nothing:
		return fmt.Sprintf("v%d.%d.0", major, minor+1)
	case semver.Prerelease(last) != "":
		return fmt.Sprintf("v%d.%d.%d", major, minor, patch)
	}
	return fmt.Sprintf("v%d.%d.%d", major, minor, patch+1)
}

// fits reports whether version allows c. A pre-release such as v0.2.0-rc.1 counts as its release.
func fits(last, version string, c change) bool {
	core := version
	if pre := semver.Prerelease(version); pre != "" {
		core = version[:len(version)-len(pre)]
	}
	return semver.Compare(core, least(last, c)) >= 0
}
