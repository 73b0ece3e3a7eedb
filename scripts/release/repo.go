package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const changelog = "CHANGELOG.md"

// deployed are the files with the version in a form that versionIn matches.
var deployed = []string{
	"deploy/helm/redlatch/Chart.yaml", "deploy/kubernetes/redlatch.yaml", "docs/operations.md", "docs/shell.md",
}

var versionIn = regexp.MustCompile(`(?m)(^version: |^appVersion: |ghcr\.io/redlatch/redlatch:|\?ref=v)\d[-.0-9A-Za-z]*`)

// unpublished lists the top-level folders whose modules are not for users.
var unpublished = []string{"bench", "cmd", "examples", "scripts", "test", "tools"}

type repo struct {
	root    string
	modules []module
}

type module struct {
	folder string
	file   *modfile.File
}

func (m module) path() string { return m.file.Module.Mod.Path }

func (m module) published() bool { return public(m.folder) }

func public(folder string) bool {
	top, _, _ := strings.Cut(folder, "/")
	return !slices.Contains(unpublished, top) && !slices.Contains(strings.Split(folder, "/"), "internal")
}

func (m module) tag(version string) string { return path.Join(m.folder, version) }

// open reads the checkout that contains folder. The core module comes first.
func open(folder string) (*repo, error) {
	r := &repo{root: folder}
	top, err := r.git("rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	r.root = strings.TrimSuffix(top, "\n")
	if r.modules, err = modulesIn(r.root); err != nil {
		return nil, err
	}
	return r, nil
}

func modulesIn(root string) ([]module, error) {
	var all []module
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		// Skip .git, and .servers, which contains Prometheus's examples with a go.mod.
		case d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.Name() != "go.mod":
			return nil
		}
		text, err := os.ReadFile(name) //nolint:gosec // a file of the checkout
		if err != nil {
			return err
		}
		file, err := modfile.Parse(name, text, nil)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, filepath.Dir(name))
		all = append(all, module{folder: filepath.ToSlash(relative), file: file})
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.folder, b.folder) })
	if len(all) == 0 || all[0].folder != "." {
		return nil, fmt.Errorf("%s: no go.mod", root)
	}
	return all, nil
}

// published returns the published modules, starting with the core.
func (r *repo) published() []module {
	var all []module
	for _, m := range r.modules {
		if m.published() {
			all = append(all, m)
		}
	}
	return all
}

// lastTag returns the core's highest version in HEAD's history, or "".
func (r *repo) lastTag() (string, error) {
	out, err := r.git("tag", "--list", "v*", "--merged", "HEAD")
	if err != nil {
		return "", err
	}
	tags := slices.DeleteFunc(strings.Fields(out), func(tag string) bool { return !semver.IsValid(tag) })
	if len(tags) == 0 {
		return "", nil
	}
	semver.Sort(tags)
	return tags[len(tags)-1], nil
}

func (r *repo) git(args ...string) (string, error) {
	// In a container, the checkout may belong to another user.
	args = append([]string{"-C", r.root, "-c", "safe.directory=*"}, args...)
	cmd := exec.Command("git", args...) //nolint:gosec,noctx // a command of this program, which waits for it
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args[4:], " "), err, said.String())
	}
	return string(out), nil
}

func (*repo) goCommand(folder string, args ...string) (string, error) {
	cmd := exec.Command("go", args...) //nolint:gosec,noctx // a command of this program, which waits for it
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// release restores the checkout on error.
func (r *repo) release(w io.Writer, version string, opts options) (err error) {
	before, err := r.git("rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if opts.dryRun {
		return r.plan(w, version)
	}
	var tags []string
	defer func() {
		if err == nil {
			return
		}
		for _, tag := range tags {
			_, undo := r.git("tag", "--delete", tag)
			err = errors.Join(err, undo)
		}
		_, undo := r.git("reset", "--hard", strings.TrimSpace(before))
		err = errors.Join(err, undo)
	}()
	if err := r.write(version); err != nil {
		return err
	}
	// After an earlier trial, the commit may be empty.
	if _, err := r.git("commit", "--allow-empty", "--all", "--message", "release: "+version); err != nil {
		return err
	}
	for _, m := range r.published() {
		tag := m.tag(version)
		if _, err := r.git("tag", "--annotate", "--message", "release "+version, tag); err != nil {
			return err
		}
		tags = append(tags, tag)
	}
	_, err = fmt.Fprintf(w, "\nTagged. To publish it:\n\n  git push --atomic origin HEAD %s\n", strings.Join(tags, " "))
	return err
}

func (r *repo) plan(w io.Writer, version string) error {
	_, _ = fmt.Fprintln(w, "\nTo be written, committed and tagged:")
	for _, m := range r.modules {
		for _, needed := range r.needs(m) {
			_, _ = fmt.Fprintf(w, "  %-28s require %s %s\n", path.Join(m.folder, "go.mod"), needed, version)
		}
	}
	for _, name := range deployed {
		_, _ = fmt.Fprintf(w, "  %-28s %s\n", name, strings.TrimPrefix(version, "v"))
	}
	for _, m := range r.published() {
		_, _ = fmt.Fprintf(w, "  %-28s %s\n", "tag", m.tag(version))
	}
	return nil
}

func (r *repo) needs(m module) []string {
	var all []string
	for _, other := range r.published() {
		for _, required := range m.file.Require {
			if required.Mod.Path == other.path() {
				all = append(all, other.path())
			}
		}
	}
	return all
}

// write writes version into the modules. It builds those that are published or make the programs.
func (r *repo) write(version string) error {
	for _, m := range r.modules {
		for _, needed := range r.needs(m) {
			if err := m.file.AddRequire(needed, version); err != nil {
				return err
			}
		}
		text, err := m.file.Format()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.root, m.folder, "go.mod"), text, 0o644); err != nil { //nolint:gosec // a file of the checkout
			return err
		}
	}
	if err := errors.Join(r.head(version, time.Now()), r.deploy(version)); err != nil {
		return err
	}
	for _, m := range r.modules {
		if !m.published() && !strings.HasPrefix(m.folder, "cmd/") {
			continue
		}
		if out, err := r.goCommand(filepath.Join(r.root, m.folder), "build", "-mod=readonly", "-o", os.DevNull, "./..."); err != nil {
			return fmt.Errorf("%s: %w: %s", m.path(), err, out)
		}
	}
	return nil
}

func (r *repo) head(version string, at time.Time) error {
	heading := fmt.Sprintf("%s\n## [%s] - %s\n", unreleased, strings.TrimPrefix(version, "v"), at.UTC().Format(time.DateOnly))
	return r.rewrite(changelog, func(text string) string { return strings.Replace(text, unreleased, heading, 1) })
}

// deploy writes the version into the chart, its rendered copy and the commands that install it.
func (r *repo) deploy(version string) error {
	for _, name := range deployed {
		err := r.rewrite(name, func(text string) string {
			return versionIn.ReplaceAllString(text, "${1}"+strings.TrimPrefix(version, "v"))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *repo) rewrite(name string, change func(text string) string) error {
	name = filepath.Join(r.root, name)
	text, err := os.ReadFile(name) //nolint:gosec // a file of the checkout
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(change(string(text))), 0o644) //nolint:gosec // a file of the checkout
}
