package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// release writes the version, commits and tags. After an error the checkout is as it was.
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
		// The tree had no changes: nothing is lost.
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
	// A release may change nothing: that of a trial, soon after another one.
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

// plan prints what release would do.
func (r *repo) plan(w io.Writer, version string) error {
	_, _ = fmt.Fprintln(w, "\nThis would be written, committed and tagged:")
	for _, m := range r.modules {
		for _, needed := range r.needs(m) {
			_, _ = fmt.Fprintf(w, "  %-28s require %s %s\n", path.Join(m.folder, "go.mod"), needed, version)
		}
	}
	for _, m := range r.published() {
		_, _ = fmt.Fprintf(w, "  %-28s %s\n", "tag", m.tag(version))
	}
	return nil
}

// needs returns which published modules a module names in its go.mod.
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

// write writes the version into each go.mod that names a published module, and into the changelog,
// and builds what is published.
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
	if err := r.head(version, time.Now()); err != nil {
		return err
	}
	for _, m := range r.published() {
		if out, err := r.goCommand(filepath.Join(r.root, m.folder), "build", "-mod=readonly", "./..."); err != nil {
			return fmt.Errorf("%s: %w: %s", m.path(), err, out)
		}
	}
	return nil
}

// head puts the version above what the changelog says of it.
func (r *repo) head(version string, at time.Time) error {
	name := filepath.Join(r.root, changelog)
	text, err := os.ReadFile(name) //nolint:gosec // a file of the checkout
	if err != nil {
		return err
	}
	heading := fmt.Sprintf("%s\n## [%s] - %s\n", unreleased, strings.TrimPrefix(version, "v"), at.UTC().Format(time.DateOnly))
	changed := strings.Replace(string(text), unreleased, heading, 1)
	return os.WriteFile(name, []byte(changed), 0o644) //nolint:gosec // a file of the checkout
}
