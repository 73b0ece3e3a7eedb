package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

type workshop struct {
	dir string
	tmp string

	unchanged map[string]string
	baseline  map[catcher]error // why tests fail on unchanged code; nil if they pass
}

// git runs a git command that prints file names terminated by NUL, and returns them.
func git(ctx context.Context, root string, args ...string) ([]string, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	//nolint:gosec // the arguments come from this program
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=" + abs}, args...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}

func changed(ctx context.Context, root, since string) ([]string, error) {
	return git(ctx, root, "diff", "-z", "--name-only", "--relative", since, "--")
}

// openWorkshop copies the checkout. The copy shares the servers that make setup installed.
func openWorkshop(ctx context.Context, root string) (*workshop, error) {
	names, err := git(ctx, root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	servers, err := filepath.Abs(filepath.Join(root, ".servers"))
	if err != nil {
		return nil, err
	}
	base, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	w := &workshop{
		dir: filepath.Join(base, "src"), tmp: filepath.Join(base, "tmp"),
		unchanged: map[string]string{}, baseline: map[catcher]error{},
	}
	err = os.MkdirAll(w.tmp, 0o700)
	for _, name := range names {
		if err == nil {
			err = copyFile(filepath.Join(root, name), filepath.Join(w.dir, name))
		}
	}
	if err == nil {
		err = os.Symlink(servers, filepath.Join(w.dir, ".servers"))
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// close removes the copy. It first kills processes that tests left behind, whose command lines contain the copy's path.
func (w *workshop) close() {
	base := filepath.Dir(w.dir)
	//nolint:gosec // this program created the folder
	_ = exec.CommandContext(context.Background(), "pkill", "-KILL", "-f", base).Run()
	_ = os.RemoveAll(base)
}

// copyFile copies a file. It ignores files that are not regular or have been deleted.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if os.IsNotExist(err) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	text, err := os.ReadFile(from) //nolint:gosec // a file in the checkout
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, text, info.Mode().Perm()|0o200) //nolint:gosec // a file in the copy
	}
	return err
}

func (w *workshop) plant(m *mutant) (before string, err error) {
	text, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(m.file)))
	if err != nil {
		return "", err
	}
	mutated, err := m.apply(string(text))
	if err == nil {
		err = w.write(m.file, mutated)
	}
	return string(text), err
}

func (w *workshop) write(file, text string) error {
	return os.WriteFile(filepath.Join(w.dir, filepath.FromSlash(file)), []byte(text), 0o600) //nolint:gosec // a file in the copy
}

func (w *workshop) check(ctx context.Context, c catcher) error {
	if err, known := w.baseline[c]; known {
		return err
	}
	if w.unchanged[c.pkg] == "" {
		binary, err := w.build(ctx, c.pkg)
		if err == nil {
			err = os.Rename(binary, binary+".unchanged")
		}
		if err != nil {
			return err
		}
		w.unchanged[c.pkg] = binary + ".unchanged"
	}
	r := w.run(ctx, w.unchanged[c.pkg], c)
	shows, err := r.judge(c)
	if err == nil && shows != survived {
		err = fmt.Errorf("it fails on unchanged code:\n%s", r.tail())
	}
	w.baseline[c] = err
	return err
}

// raced contains the packages whose tests need the race detector to detect that a lock is missing.
var raced = []string{"test/schedules"}

// build compiles the tests of a package. It runs in the package's folder, because it may be in a nested module.
func (w *workshop) build(ctx context.Context, pkg string) (binary string, err error) {
	binary = filepath.Join(w.tmp, strings.ReplaceAll(pkg, "/", "_")+".test")
	args := []string{"test", "-c", "-vet=off", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, "."}
	if slices.Contains(raced, pkg) {
		args = slices.Insert(args, 1, "-race")
	}
	//nolint:gosec // the arguments come from the lists of this program
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(w.dir, filepath.FromSlash(pkg))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("the tests of %s do not compile: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// run runs one test, which must not be skipped, or all tests of a package except those that take minutes.
func (w *workshop) run(ctx context.Context, binary string, c catcher) run {
	const bound = 3 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, bound+time.Minute)
	defer cancel()
	pattern, level := "", ""
	if c.test != "" {
		pattern, level = "^"+c.test+"$", "all"
	}
	//nolint:gosec // as above
	cmd := exec.CommandContext(ctx, binary, "-test.v", "-test.failfast", "-test.run="+pattern, "-test.timeout="+bound.String())
	cmd.Dir = filepath.Join(w.dir, filepath.FromSlash(c.pkg))
	cmd.Env = append(os.Environ(), "TMPDIR="+w.tmp, testlevel.Env+"="+level)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	return run{output: string(out), failed: err != nil, killed: ctx.Err() != nil}
}
