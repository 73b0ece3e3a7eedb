package cli

import (
	"fmt"
	"os"
	"syscall"
)

// The exit codes of all commands. A command whose codes are those of another program, as redlatch
// run, has CodeRunFailed for what is wrong with redlatch, as env(1) and timeout(1) do.
const (
	// CodeFailed says that something failed.
	CodeFailed = 1
	// CodeUsage says that the command line is wrong, or the address of the server: nothing was
	// done.
	CodeUsage = 2
	// CodeReplica says that a command that writes was sent to a replica.
	CodeReplica = 2
	// CodeConflict says that the lock was not acquired, unless a flag names another code.
	CodeConflict = 124
	// CodeRunFailed says that redlatch run, hold or release failed or was typed wrong, or that the
	// lock was lost.
	CodeRunFailed = 125
	// CodeNotRunnable says that the command of run was found but cannot be run.
	CodeNotRunnable = 126
	// CodeNotFound says that there is no such command.
	CodeNotFound = 127

	// codeSignal is added to the number of the signal that ended a program.
	codeSignal = 128
)

// SignalCode returns the exit code of a program that sig ended, as a shell gives it.
func SignalCode(sig os.Signal) int {
	if number, ok := sig.(syscall.Signal); ok {
		return codeSignal + int(number)
	}
	return CodeRunFailed
}

// ExitError is an error with the exit code that it leads to.
type ExitError struct {
	// Code is the exit code.
	Code int
	// Err is the error to print; nil prints nothing.
	Err error
}

// Error returns the text to print.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// Errorf returns an ExitError with a text to print.
func Errorf(code int, format string, args ...any) error {
	return &ExitError{Code: code, Err: fmt.Errorf(format, args...)}
}

// Usagef returns an error with [CodeUsage] and a text to print.
func Usagef(format string, args ...any) error { return Errorf(CodeUsage, format, args...) }
