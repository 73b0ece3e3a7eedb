package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// changelog is the file that tells users what has changed.
const changelog = "CHANGELOG.md"

// unpublished are the top folders whose modules serve the checkout alone. Their packages are no
// part of the API either.
var unpublished = []string{"bench", "cmd", "examples", "scripts", "test", "tools"}

// repo is a checkout.
type repo struct {
	root    string
	modules []module
}

// module is one of a checkout.
type module struct {
	folder string // in the checkout, with slashes; "." is the core
	file   *modfile.File
}

// path returns what users import.
func (m module) path() string { return m.file.Module.Mod.Path }

// published reports whether users import the module.
func (m module) published() bool { return public(m.folder) }

// public reports whether a folder of the checkout, or a package of a module, is for users.
func public(folder string) bool {
	top, _, _ := strings.Cut(folder, "/")
	return !slices.Contains(unpublished, top) && !slices.Contains(strings.Split(folder, "/"), "internal")
}

// tag returns the tag of a version of the module.
func (m module) tag(version string) string { return path.Join(m.folder, version) }

// open reads the checkout that a folder is in. The core comes first.
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

// modulesIn reads the modules below a folder.
func modulesIn(root string) ([]module, error) {
	var all []module
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		// .git, and .servers, where Prometheus has examples with a go.mod.
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
		return nil, fmt.Errorf("%s has no go.mod", root)
	}
	return all, nil
}

// published returns the modules that users import, the core first.
func (r *repo) published() []module {
	var all []module
	for _, m := range r.modules {
		if m.published() {
			all = append(all, m)
		}
	}
	return all
}

// lastTag returns the highest version of the core that HEAD comes from, or "" when there is none.
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

// git returns what a git command prints.
func (r *repo) git(args ...string) (string, error) {
	// In a container the checkout may be another user's.
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

// goCommand returns what a go command prints in a folder, errors included.
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
