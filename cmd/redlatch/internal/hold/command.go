package hold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

// grace returns the part of the loss margin between SIGTERM and SIGKILL. The rest allows for delays and clock drift.
func grace(margin time.Duration) time.Duration { return margin * 6 / 10 }

func findCommand(name string) (string, error) {
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

func inPath(name string) string {
	if name == "" || strings.ContainsRune(name, filepath.Separator) {
		return ""
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path) //nolint:gosec // the user names the file
		if err == nil && !info.IsDir() {
			return path
		}
	}
	return ""
}

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

// forwardedSignals omits signals that this process ignores, for example under nohup.
func forwardedSignals() (<-chan os.Signal, func()) {
	ch := make(chan os.Signal, 8)
	for _, sig := range forwarded {
		if !signal.Ignored(sig) {
			signal.Notify(ch, sig)
		}
	}
	return ch, func() { signal.Stop(ch) }
}

// supervise waits for the command to exit, and passes signals on to it. If held, the hold's
// context, ends first, supervise stops the command as onLost specifies. It reports whether the lock
// was lost while the command was running, and whether a stopping signal was passed on.
func supervise(held context.Context, p *process, signals <-chan os.Signal, onLost string, grace time.Duration) (lost, signaled bool) {
	defer p.release()
	watched := held
	if onLost == lossIgnore {
		watched = context.Background()
	}
	for {
		select {
		case <-p.done:
			return held.Err() != nil, signaled
		case <-watched.Done():
			if onLost == lossTerm {
				p.terminate()
				time.Sleep(grace) // do not stop early, because children may outlive the command
			}
			p.kill()
			<-p.done
			return true, signaled
		case sig := <-signals:
			p.pass(sig)
			signaled = signaled || slices.Contains(stopping, sig)
		case <-p.stops:
			p.suspend(watched)
		}
	}
}
