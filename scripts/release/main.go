// Program release makes a release in a checkout: it looks whether one may be made, writes the
// version into the nested modules, commits and tags. It pushes nothing.
//
//	go run -C scripts/release . v0.2.0            release v0.2.0
//	go run -C scripts/release . -dry-run v0.2.0   only look, and print what would be done
//	go run -C scripts/release . -api              print what the API has lost and got since the last tag
//	go run -C scripts/release . -api -since REV   the same since another revision
//
// All modules that users import have one version, and their tags are on one commit: vX.Y.Z for the
// core, adapter/goredis/vX.Y.Z and so on for the nested ones. A nested module names the core that it
// needs in its go.mod; there it keeps its replace, which tests in the checkout need and the go
// command ignores in a module that another one requires. So the required version must be one that
// exists, and this program writes it.
//
// It refuses
//
//   - a version that is no semantic version, is not above the last one, or is tagged already,
//   - a tree with changes,
//   - an API that has changed more than the version says: what breaks needs a new major version, or
//     before v1 a new minor one; what is added needs a new minor version,
//   - a changelog without a line for the release.
//
// The last point is left out with -trial, for a clone that is thrown away. The tests of this module
// make such a release, serve it from a folder as a module proxy does, and build programs with it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	dryRun := flag.Bool("dry-run", false, "only look, and print what would be done")
	trial := flag.Bool("trial", false, "for a clone that is thrown away: the changelog is not looked at")
	api := flag.Bool("api", false, "print what the API has lost and got since the last tag")
	since := flag.String("since", "", "with -api: since this `revision`")
	flag.Parse()
	var err error
	switch {
	case *api && flag.NArg() == 0:
		err = printAPI(os.Stdout, ".", *since)
	case !*api && flag.NArg() == 1:
		err = run(os.Stdout, ".", flag.Arg(0), options{dryRun: *dryRun, trial: *trial})
	default:
		err = errors.New("usage: release [-dry-run] [-trial] VERSION, or release -api [-since REVISION]")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// options are those of the command line.
type options struct{ dryRun, trial bool }

// run makes the release of a version in the checkout that a folder is in.
func run(w io.Writer, folder, version string, opts options) error {
	r, err := open(folder)
	if err != nil {
		return err
	}
	last, err := r.lastTag()
	if err != nil {
		return err
	}
	if err := r.check(w, last, version, opts); err != nil {
		return err
	}
	return r.release(w, version, opts)
}

// check says why the release may not be made. It goes on after a finding, so that one run tells
// all of them.
func (r *repo) check(w io.Writer, last, version string, opts options) error {
	checks := []struct {
		what  string
		left  bool
		check func() error
	}{
		{"version", false, func() error { return r.checkVersion(last, version) }},
		{"clean tree", false, r.checkClean},
		{"API since " + orNothing(last), false, func() error { return r.checkAPI(w, last, version) }},
		{"changelog", opts.trial, r.checkChangelog},
	}
	var failed []string
	for _, c := range checks {
		if c.left {
			_, _ = fmt.Fprintf(w, "%-20s not looked at: this is a trial\n", c.what)
			continue
		}
		if err := c.check(); err != nil {
			_, _ = fmt.Fprintf(w, "%-20s REFUSED: %v\n", c.what, err)
			failed = append(failed, c.what)
			continue
		}
		_, _ = fmt.Fprintf(w, "%-20s ok\n", c.what)
	}
	if len(failed) > 0 {
		return fmt.Errorf("%s is not released because of: %s", version, strings.Join(failed, ", "))
	}
	return nil
}

// orNothing names a tag.
func orNothing(tag string) string {
	if tag == "" {
		return "no tag"
	}
	return tag
}

// checkClean refuses a tree with changes: they would be tagged, or would be missing in the tag.
func (r *repo) checkClean() error {
	out, err := r.git("status", "--porcelain")
	if err != nil {
		return err
	}
	if out != "" {
		return fmt.Errorf("the tree has changes; commit them first:\n%s", out)
	}
	return nil
}

// unreleased is the heading of the changelog below which changes are told before they are released.
const unreleased = "## [Unreleased]\n"

// checkChangelog refuses a release without a line in the changelog.
func (r *repo) checkChangelog() error {
	text, err := os.ReadFile(filepath.Join(r.root, changelog))
	if err != nil {
		return err
	}
	_, after, found := strings.Cut(string(text), unreleased)
	if !found {
		return fmt.Errorf("%s has no heading %q", changelog, strings.TrimSpace(unreleased))
	}
	section, _, _ := strings.Cut(after, "\n## ")
	if !strings.Contains(section, "\n- ") && !strings.Contains(section, "\n| ") {
		return fmt.Errorf("%s says of nothing that it is new", changelog)
	}
	return nil
}
