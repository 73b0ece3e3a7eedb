package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/tool/holding"
)

// The exit codes for commands that did not run, as in env(1) and timeout(1).
const (
	// CodeFailed says that running the command failed for reasons of our own.
	CodeFailed = 125
	// CodeNotRunnable says that the command was found but cannot be run.
	CodeNotRunnable = 126
	// CodeNotFound says that there is no such command.
	CodeNotFound = 127
)

// Error says that the command could not be run.
type Error struct {
	// Code is the exit code that tells why, one of the Code constants.
	Code int
	// Err is what went wrong, with the command's name.
	Err error
}

// Error returns what went wrong.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns what went wrong.
func (e *Error) Unwrap() error { return e.Err }

// Grace returns the time from SIGTERM to SIGKILL that fits into the margin. The
// rest is for the kernel, and for clocks that drift.
func Grace(margin time.Duration) time.Duration { return margin * 6 / 10 }

// Find returns the path of the command called name, by PATH unless name has a
// slash. Its errors are of type *Error.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	code := CodeNotRunnable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = CodeNotFound
	}
	if there := inPath(name); code == CodeNotFound && there != "" {
		code, err = CodeNotRunnable, fmt.Errorf("%s: %w", there, fs.ErrPermission)
	}
	return "", &Error{Code: code, Err: fmt.Errorf("run %s: %w", name, cause(err))}
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

// variables are what redlatch tells of a hold. A run within the command of another one, or of a
// script that holds a lock, has those in its environment.
var variables = holding.Variables()

// Environ returns the environment of this process without variables of redlatch, and with
// those in more, each as name=value.
func Environ(more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(old string) bool {
		name, _, _ := strings.Cut(old, "=")
		return slices.Contains(variables, name)
	})
	return append(env, more...)
}
