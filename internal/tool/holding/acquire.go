package holding

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// undoLimit bounds the time after a failed attempt in which what it may have left is undone. It adds
// to --wait. Closing the connections ends a command that the server delays.
const undoLimit = 500 * time.Millisecond

// Held is a lock that was taken.
type Held struct {
	// Hold is its hold.
	Hold *rlock.Hold
	// Lock is the lock.
	Lock Locker
	// Since is a moment at which it was held.
	Since time.Time

	srv    *connect.Server
	client *redlatch.Client
}

// Close ends the connections. It also finishes, for a moment, what an Unlock without an answer
// left open.
func (h *Held) Close() { _ = h.client.Close() }

// Acquire connects and takes the lock. A signal ends the waiting. An error is an ExitError.
func (o *Options) Acquire(ctx context.Context, name string, signals <-chan os.Signal) (*Held, error) {
	ctx, caught := cancelOn(ctx, signals)
	h, err := o.open(ctx, name)
	sig := caught()
	if sig == nil {
		return h, err
	}
	if err == nil {
		_ = h.Hold.Unlock() // the signal is what counts; the lease frees it at worst
		h.Close()
	}
	return nil, &cli.ExitError{Code: cli.SignalCode(sig)}
}

// open connects and takes the lock. Its errors have their exit codes.
func (o *Options) open(ctx context.Context, name string) (*Held, error) {
	if err := limits.Name(name); err != nil {
		return nil, &cli.ExitError{Code: CodeFailed, Err: err}
	}
	srv, err := o.Server()
	if err != nil {
		return nil, &cli.ExitError{Code: CodeFailed, Err: err}
	}
	connecting, connected := o.connecting(ctx)
	client, err := srv.Open(connecting,
		redlatch.WithWatchdogTimeout(o.Watchdog), redlatch.WithLossMargin(o.Margin().Truncate(time.Millisecond)))
	connected()
	if err != nil {
		return nil, &cli.ExitError{Code: CodeFailed, Err: err}
	}
	lock, hold, err := o.lockOrPermit(ctx, srv, client, name)
	if err != nil {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = engine.EngineOf(client).CloseWithin(undoLimit) // the first error tells more
		}()
		err = o.notTaken(ctx, srv, name, err)
		<-closed
		return nil, err
	}
	return &Held{Hold: hold, Lock: lock, Since: time.Now(), srv: srv, client: client}, nil
}

func (o *Options) take(ctx context.Context, lock Locker) (*rlock.Hold, error) {
	var opts []rlock.Option
	if o.Lease > 0 {
		opts = append(opts, rlock.WithLease(o.Lease))
	}
	if o.MaxHold > 0 {
		opts = append(opts, rlock.WithMaxHold(o.MaxHold))
	}
	if o.Try {
		return lock.TryLock(ctx, opts...)
	}
	if o.bounded {
		opts = append(opts, rlock.WithWait(o.Wait))
	}
	return lock.Lock(ctx, opts...)
}

// notTaken makes the exit code and the line of an acquire that failed.
func (o *Options) notTaken(ctx context.Context, srv *connect.Server, name string, err error) error {
	var at *redlatch.LockError
	var other *transport.ServerError
	var odd *inspect.NotLock
	var replica *connect.OnReplica
	if o.Permits != "" {
		if refused := o.noPermit(err); refused != nil {
			return refused
		}
	}
	switch {
	case errors.As(err, &odd), errors.As(err, &replica):
		return &cli.ExitError{Code: CodeFailed, Err: err}
	case errors.Is(err, redlatch.ErrNotAcquired) && errors.As(err, &at) && at.TTL > 0:
		return cli.Errorf(o.Conflict, "lock %q is held by another owner, for %v if it is not renewed",
			name, limits.Show(at.TTL, 100*time.Millisecond))
	case errors.Is(err, redlatch.ErrNotAcquired) && at != nil && at.TTL == redlatch.NoTTL:
		return cli.Errorf(o.Conflict, "lock %q is held by another owner, whose lease never ends: it stays until it is released", name)
	case errors.Is(err, redlatch.ErrNotAcquired) && o.Fair && at != nil && at.Holder.IsZero():
		return cli.Errorf(o.Conflict, "lock %q is free, but others are queued for it", name)
	case errors.Is(err, redlatch.ErrNotAcquired):
		return cli.Errorf(o.Conflict, "lock %q is held by another owner", name)
	case errors.Is(err, rfencedlock.ErrCounter):
		return cli.Errorf(CodeFailed, "lock %q: its token counter cannot be raised: the key %q must hold a number from 0 on",
			name, codec.TokenKey(name))
	case errors.Is(err, redlatch.ErrWrongType) && (o.Read || o.Write):
		return cli.Errorf(CodeFailed, "lock %q: the key holds something that is no read/write lock, such as a plain lock of this name", name)
	case errors.Is(err, redlatch.ErrWrongType) && !errors.As(err, &other):
		return &cli.ExitError{Code: CodeFailed, Err: err} // a hash of another program, which it names
	case errors.Is(err, redlatch.ErrWrongType):
		return &cli.ExitError{Code: CodeFailed, Err: inspect.WrongType(ctx, srv, name)}
	case connect.Denied(err):
		return cli.Errorf(CodeFailed, "Redis at %s refuses: %s", srv, o.denied(ctx, srv, name, err))
	case errors.Is(err, redlatch.ErrNotSent), errors.Is(err, redlatch.ErrUncertain), errors.As(err, &other):
		return &cli.ExitError{Code: CodeFailed, Err: srv.Problem(err)}
	}
	return &cli.ExitError{Code: CodeFailed, Err: err}
}

// cancelOn returns a context that ends when a signal arrives, and a function
// that stops listening and returns that signal, nil if there was none.
func cancelOn(parent context.Context, signals <-chan os.Signal) (context.Context, func() os.Signal) {
	ctx, cancel := context.WithCancel(parent)
	caught := make(chan os.Signal, 1)
	go func() {
		defer close(caught)
		select {
		case sig := <-signals:
			caught <- sig
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() os.Signal {
		cancel()
		return <-caught
	}
}
