package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// ended is the cause of a context that a signal has ended.
type ended struct{ by os.Signal }

func (e *ended) Error() string { return "ended by " + e.by.String() }

// ErrInterrupted is printed where an interruption costs the outcome.
var ErrInterrupted = errors.New("interrupted")

// UntilSignal runs a command that goes on until a signal ends it. Its context ends with
// SIGINT, with SIGTERM, or with one of the other signals. The exit code is then 128 and the
// signal's number, as in shells, whatever do returned, and say is printed; nil prints
// nothing.
func UntilSignal(parent context.Context, say error, do func(context.Context) error, others ...os.Signal) error {
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
		return &ExitError{Code: SignalCode(e.by), Err: say}
	}
	return err
}
