package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

// Grace returns the time from SIGTERM to SIGKILL that fits into the margin. The
// rest is for the kernel, and for clocks that drift.
func Grace(margin time.Duration) time.Duration { return margin * 6 / 10 }

// Find returns the path of the command called name, by PATH unless name has a
// slash. Its errors are of type *cli.ExitError.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	code := cli.CodeNotRunnable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = cli.CodeNotFound
	}
	if there := inPath(name); code == cli.CodeNotFound && there != "" {
		code, err = cli.CodeNotRunnable, fmt.Errorf("%s: %w", there, fs.ErrPermission)
	}
	return "", cli.Errorf(code, "run %s: %w", name, cause(err))
}

// inPath returns a file of that name in PATH, runnable or not: LookPath passes
// over those that are not.
func inPath(name string) string {
	if name == "" || strings.ContainsRune(name, filepath.Separator) {
		return ""
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path) //nolint:gosec // looking for what the user named, where the user said
		if err == nil && !info.IsDir() {
			return path
		}
	}
	return ""
}

// cause returns the error without the operation and the path around it, which
// would show twice.
func cause(err error) error {
	var named *exec.Error
	var at *fs.PathError
	switch {
	case errors.As(err, &named):
		return named.Err
	case errors.As(err, &at):
		return at.Err
	}
	return err
}

// GuardCommand is the hidden command that runs [Guard].
const GuardCommand = "__guard"

// Signals returns the signals that a command under a lock should get in our
// place, and a function that ends the delivery. A signal that is ignored, as
// under nohup, stays ignored.
func Signals() (<-chan os.Signal, func()) {
	ch := make(chan os.Signal, 8)
	for _, sig := range forwarded {
		if !signal.Ignored(sig) {
			signal.Notify(ch, sig)
		}
	}
	return ch, func() { signal.Stop(ch) }
}
