package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes. Commands that return the exit code of another program use CodeRunFailed for their own
// errors, as env(1) does.
const (
	CodeFailed = 1
	// CodeUsage means that the command line or the server's address is wrong.
	CodeUsage = 2
	// CodeReplica means that a command cannot write because the server is a replica.
	CodeReplica = 2
	// CodeConflict means that the lock was not acquired, unless a flag sets another code.
	CodeConflict = 124
	// CodeRunFailed means that run, hold or release failed, or that the lock was lost.
	CodeRunFailed = 125
	// CodeNotRunnable means that run found its command but could not run it.
	CodeNotRunnable = 126
	CodeNotFound    = 127

	codeSignal = 128
)

// exitCodes contains codes and their meanings in Markdown.
var exitCodes = [][2]string{
	{"0", "success"},
	{"1", "the command failed; `doctor --strict`: there are warnings; `evict OWNER`: it was not evicted"},
	{"2", "the command line or the server's address is invalid, and nothing was done (125 for `run`, `hold` and `release`); " +
		"`unlock`, `evict`, `demo`: the server is a replica; `unlock`: the lock was not released; `doctor`: there are errors"},
	{"3", "`unlock`: the lock is free; `status --exit-code`: a lock is free"},
	{"124", "`run`, `hold`: the lock was not acquired; `--conflict-exit-code` changes this"},
	{"125", "`run`, `hold`, `release`: redlatch failed, or the lock was lost"},
	{"126", "`run`: the command was found but could not be run"},
	{"127", "`run`: the command was not found"},
	{"128+n", "signal n ended the command: 130 for SIGINT, 141 for SIGPIPE, 143 for SIGTERM"},
	{"other", "`run`: the exit code of its command"},
}

// ExitCodesTable returns the exit codes of all commands as a Markdown table.
func ExitCodesTable() string {
	table := "| exit code | meaning |\n|---|---|\n"
	for _, row := range exitCodes {
		table += "| " + row[0] + " | " + row[1] + " |\n"
	}
	return table
}

// ExitCodesText returns the exit codes of all commands for a terminal.
func ExitCodesText() string {
	const column = 8
	var text strings.Builder
	for _, row := range exitCodes {
		lines := Wrap(strings.ReplaceAll(row[1], "`", ""), Columns-1-column)
		fmt.Fprintf(&text, "  %-*s%s\n", column-2, row[0], strings.Join(lines, "\n"+strings.Repeat(" ", column)))
	}
	return text.String()
}

func newExitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "The exit codes of all commands",
		Long:  "The exit codes of all commands. Each command's help lists its own.\n\n" + strings.TrimSuffix(ExitCodesText(), "\n"),
	}
}

// SignalCode returns the exit code that shells use for a program killed by sig.
func SignalCode(sig os.Signal) int {
	if number, ok := sig.(syscall.Signal); ok {
		return codeSignal + int(number)
	}
	return CodeRunFailed
}

// ExitError is an error with an exit code. If Err is nil, no message is printed.
type ExitError struct {
	Code int
	Err  error
}

// Error returns the message of Err, or the exit code if Err is nil.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// Errorf returns an ExitError with a formatted message.
func Errorf(code int, format string, args ...any) error {
	return &ExitError{Code: code, Err: fmt.Errorf(format, args...)}
}

// Usagef returns an ExitError with [CodeUsage].
func Usagef(format string, args ...any) error { return Errorf(CodeUsage, format, args...) }

type ended struct{ by os.Signal }

func (e *ended) Error() string { return "ended by " + e.by.String() }

// UntilSignal calls do with a context that is canceled by SIGINT, SIGTERM or a signal in others.
// After a signal, it ignores do's error and returns an ExitError with the signal's code.
func UntilSignal(parent context.Context, do func(context.Context) error, others ...os.Signal) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, append(others, os.Interrupt, syscall.SIGTERM)...)
	defer signal.Stop(heard)
	go func() {
		select {
		case sig := <-heard:
			cancel(&ended{by: sig})
		case <-ctx.Done():
		}
	}()
	err := do(ctx)
	var e *ended
	if errors.As(context.Cause(ctx), &e) {
		return &ExitError{Code: SignalCode(e.by)}
	}
	return err
}

// Stdout is standard output. It remembers the first error for commands that ignore write errors.
type Stdout struct {
	file   *os.File
	failed func(error)

	mu  sync.Mutex // guards err
	err error
}

// NewStdout returns a writer to file. It calls failed after the first error.
func NewStdout(file *os.File, failed func(error)) *Stdout { return &Stdout{file: file, failed: failed} }

// Write returns the first write error on every later call.
func (s *Stdout) Write(p []byte) (int, error) {
	if err := s.Err(); err != nil {
		return 0, err
	}
	n, err := s.file.Write(p)
	if err != nil {
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
		s.failed(err)
	}
	return n, err
}

// Err returns the first write error, or nil.
func (s *Stdout) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func fileOf(w io.Writer) *os.File {
	switch w := w.(type) {
	case *os.File:
		return w
	case *Stdout:
		return w.file
	}
	return nil
}
