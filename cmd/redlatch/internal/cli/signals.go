package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// ended is the cause of a context that a signal canceled.
type ended struct{ by os.Signal }

func (e *ended) Error() string { return "ended by " + e.by.String() }

// ErrInterrupted is printed when an interruption costs the result.
var ErrInterrupted = errors.New("interrupted")

// UntilSignal calls do with a context that SIGINT, SIGTERM or one of the other signals cancels. In
// that case it ignores do's error and returns an ExitError with the signal's code and say, which
// may be nil.
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
