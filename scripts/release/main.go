// Program release makes a release in a checkout: it checks the preconditions, writes the version into the
// nested modules, commits and tags. It does not push.
//
//	go run -C scripts/release . v0.2.0            release v0.2.0
//	go run -C scripts/release . -dry-run v0.2.0   check, and print the plan
//	go run -C scripts/release . -api              print API changes since the last tag
//	go run -C scripts/release . -api -since REV   print API changes since a revision
//
// All published modules have the same version, with tags on one commit: vX.Y.Z for the core,
// adapter/goredis/vX.Y.Z and so on. The go.mod of a nested module requires the core with this
// version, which must exist. It also keeps its replace directive.
//
// The changelog is not checked with -trial, which is for temporary clones.
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
	dryRun := flag.Bool("dry-run", false, "check, and print the plan")
	trial := flag.Bool("trial", false, "do not check the changelog; for temporary clones")
	api := flag.Bool("api", false, "print the API changes since the last tag")
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

type options struct{ dryRun, trial bool }

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
			_, _ = fmt.Fprintf(w, "%-20s not checked in a trial\n", c.what)
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
		return fmt.Errorf("cannot release %s: %s", version, strings.Join(failed, ", "))
	}
	return nil
}

func orNothing(tag string) string {
	if tag == "" {
		return "no tag"
	}
	return tag
}

// checkClean rejects uncommitted changes, which would either be tagged or be missing from the tag.
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

const unreleased = "## [Unreleased]\n"

func (r *repo) checkChangelog() error {
	text, err := os.ReadFile(filepath.Join(r.root, changelog))
	if err != nil {
		return err
	}
	_, after, found := strings.Cut(string(text), unreleased)
	if !found {
		return fmt.Errorf("%s: missing heading %q", changelog, strings.TrimSpace(unreleased))
	}
	section, _, _ := strings.Cut(after, "\n## ")
	if !strings.Contains(section, "\n- ") && !strings.Contains(section, "\n| ") {
		return fmt.Errorf("%s: no entry below [Unreleased]", changelog)
	}
	return nil
}
