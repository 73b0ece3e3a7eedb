package callercontext

import (
	"context"
	"log/slog"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/leader"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rsemaphore"
)

func work(ctx context.Context) error { return ctx.Err() }

type doer interface {
	Do(context.Context, func(context.Context) error, ...rlock.Option) error
}

func callers(ctx context.Context, lock *rlock.Lock, d doer, all *rmultilock.Lock, permits *rsemaphore.Expirable) {
	_ = lock.Do(ctx, func(context.Context) error {
		return work(ctx) // want `ctx does not end when the lock is lost: use the context that Do passes to this function`
	})
	_ = d.Do(ctx, func(held context.Context) error {
		each := func() error { return work(ctx) }                // want `ctx does not end`
		limited, cancel := context.WithTimeout(ctx, time.Second) // want `ctx does not end`
		defer cancel()
		_ = each()
		return work(limited)
	})
	_ = all.Do(ctx, func(held context.Context) error {
		return permits.Do(held, 1, func(context.Context) error {
			return work(held) // want `held does not end`
		})
	})
	_ = permits.Do(ctx, 1, func(context.Context) error {
		return all.Do(ctx, func(context.Context) error { // want `ctx does not end`
			return work(ctx) // want `ctx does not end`
		})
	})
}

func fenced(parent context.Context, lock *rfencedlock.Lock) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	return lock.Do(ctx, func(held context.Context, hold *rfencedlock.Hold) error {
		return work(parent) // want `parent does not end`
	})
}

func lead(ctx context.Context, client *redlatch.Client) error {
	return leader.Run(ctx, client, "name", leader.Config{
		Lead:    func(context.Context) error { return work(ctx) }, // want `ctx does not end when the lock is lost: use the context that leader.Run passes`
		OnError: func(error) { _ = work(ctx) },
	})
}

// The code below is correct.

var global = context.Background()

type server struct{ ctx context.Context }

func correct(ctx context.Context, s server, lock *rlock.Lock, fencedLock *rfencedlock.Lock) error {
	_ = lock.Do(ctx, func(ctx context.Context) error { return work(ctx) })
	_ = lock.Do(ctx, func(held context.Context) error {
		defer func() { _ = work(ctx) }()
		go func() { _ = work(ctx) }()
		slog.InfoContext(ctx, "held")
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_ = work(context.WithoutCancel(ctx))
		_ = work(global)
		_ = work(s.ctx)
		return work(held)
	})
	_ = lock.Do(ctx, func(held context.Context) error {
		ctx = held
		return work(ctx)
	})
	return fencedLock.Do(ctx, func(_ context.Context, hold *rfencedlock.Hold) error {
		inner := func(ctx context.Context) error { return work(ctx) }
		return inner(hold.Context(ctx))
	})
}

func otherDo(ctx context.Context, do func(func(context.Context) error) error) error {
	return do(func(context.Context) error { return work(ctx) })
}
