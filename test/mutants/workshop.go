package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// workshop is a copy of the checkout that mutants are applied to.
type workshop struct {
	dir string // the copy
	tmp string // for binaries, and for what the tests leave

	unchanged map[string]string // the test binaries of unchanged packages
}

// files lists what git tracks, or would track, in the checkout at root.
func files(ctx context.Context, root string) ([]string, error) {
	return git(ctx, root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
}

// changed lists the files of the checkout at root that differ from a revision.
func changed(ctx context.Context, root, since string) ([]string, error) {
	return git(ctx, root, "diff", "-z", "--name-only", "--relative", since, "--")
}

// git runs a git command whose output is a list of file names that end with NUL.
func git(ctx context.Context, root string, args ...string) ([]string, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	//nolint:gosec // the arguments are this program's own
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=" + abs}, args...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}

// openWorkshops makes n copies of root's files below tmp.
func openWorkshops(ctx context.Context, root, tmp string, n int) ([]*workshop, error) {
	names, err := files(ctx, root)
	if err != nil {
		return nil, err
	}
	all := make([]*workshop, n)
	for i := range all {
		base := filepath.Join(tmp, strconv.Itoa(i))
		w := &workshop{dir: filepath.Join(base, "src"), tmp: filepath.Join(base, "tmp"), unchanged: map[string]string{}}
		if err := os.MkdirAll(w.tmp, 0o700); err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := copyFile(filepath.Join(root, name), filepath.Join(w.dir, name)); err != nil {
				return nil, err
			}
		}
		if err := lend(root, w.dir); err != nil {
			return nil, err
		}
		all[i] = w
	}
	return all, nil
}

// lent is what git ignores and tests need: the servers that make setup has fetched,
// and the Redisson peer that scripts/compat.sh has built.
var lent = []string{".servers", "internal/test/peer/java/target"}

// lend lets the tests of a copy find what is lent, as far as it is there.
func lend(root, dir string) error {
	for _, name := range lent {
		from, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if _, err := os.Stat(from); os.IsNotExist(err) {
			continue
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.Symlink(from, to); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a regular file; others, and those deleted but still tracked,
// are left out.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if os.IsNotExist(err) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from) //nolint:gosec // a file of the checkout
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm()|0o200) //nolint:gosec // below a folder of ours
}

// plant applies a mutant and returns what takes it out again.
func (w *workshop) plant(m *mutant) (restore func() error, err error) {
	path := filepath.Join(w.dir, filepath.FromSlash(m.file))
	text, err := os.ReadFile(path) //nolint:gosec // a file of the copy
	if err != nil {
		return nil, err
	}
	changed, err := m.apply(string(text))
	if err != nil {
		return nil, err
	}
	write := func(text string) error {
		return os.WriteFile(path, []byte(text), fs.FileMode(0o600)) //nolint:gosec // as above
	}
	return func() error { return write(string(text)) }, write(changed)
}

// buildUnchanged compiles the tests of a package, once, while no mutant is planted.
func (w *workshop) buildUnchanged(ctx context.Context, pkg string) (binary string, err error) {
	if w.unchanged[pkg] != "" {
		return w.unchanged[pkg], nil
	}
	if binary, err = w.build(ctx, pkg); err != nil {
		return "", err
	}
	kept := binary + ".unchanged"
	if err = os.Rename(binary, kept); err == nil {
		w.unchanged[pkg] = kept
	}
	return kept, err
}

// build compiles the tests of a package, from its folder: it may be in a module of
// its own.
func (w *workshop) build(ctx context.Context, pkg string) (binary string, err error) {
	binary = filepath.Join(w.tmp, strings.ReplaceAll(pkg, "/", "_")+".test")
	//nolint:gosec // the arguments come from the lists of this program
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, ".")
	cmd.Dir = filepath.Join(w.dir, filepath.FromSlash(pkg))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("the tests of %s do not compile: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// run runs one test of a binary made by build.
func (w *workshop) run(ctx context.Context, binary string, c catcher, bound time.Duration) run {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, bound+time.Minute) // the binary's own bound should come first
	defer cancel()
	//nolint:gosec // as above
	cmd := exec.CommandContext(ctx, binary, "-test.v", "-test.failfast", "-test.run="+c.pattern(), "-test.timeout="+bound.String())
	cmd.Dir = filepath.Join(w.dir, filepath.FromSlash(c.pkg))
	cmd.Env = append(os.Environ(), "TMPDIR="+w.tmp, testlevel.Env+"="+c.level())
	inSession(cmd)
	cmd.WaitDelay = 5 * time.Second // what it started may have its output
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		endSession(cmd.Process.Pid)
	}
	return run{output: string(out), failed: err != nil, killed: ctx.Err() != nil, took: time.Since(began)}
}
