package cli

import (
	"fmt"
	"os"
	"syscall"
)

// The exit codes of all commands. Commands whose codes are those of another program, such as
// redlatch run, use CodeRunFailed for their own errors, as env(1) and timeout(1) do.
const (
	CodeFailed = 1
	// CodeUsage means that the command line or the server's address is wrong. Nothing was done.
	CodeUsage = 2
	// CodeReplica means that a command that writes was sent to a replica.
	CodeReplica = 2
	// CodeConflict means that the lock was not acquired, unless a flag sets another code.
	CodeConflict = 124
	// CodeRunFailed means that run, hold or release failed, that its command line is wrong, or that
	// the lock was lost.
	CodeRunFailed = 125
	// CodeNotRunnable means that run found its command but could not run it.
	CodeNotRunnable = 126
	CodeNotFound    = 127

	codeSignal = 128
)

// SignalCode returns a shell's exit code for a program that sig ended.
func SignalCode(sig os.Signal) int {
	if number, ok := sig.(syscall.Signal); ok {
		return codeSignal + int(number)
	}
	return CodeRunFailed
}

// ExitError is an error with an exit code. A nil Err prints no message.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Errorf returns an ExitError.
func Errorf(code int, format string, args ...any) error {
	return &ExitError{Code: code, Err: fmt.Errorf(format, args...)}
}

// Usagef returns an ExitError with [CodeUsage].
func Usagef(format string, args ...any) error { return Errorf(CodeUsage, format, args...) }
