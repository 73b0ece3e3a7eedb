package rlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/rlock"
)

var downs = map[string]func(t *testing.T, w *wire, client *redlatch.Client){
	"refuses connections": func(_ *testing.T, w *wire, _ *redlatch.Client) { w.refuse.Store(true); w.reset() },
	"never answers":       func(_ *testing.T, w *wire, _ *redlatch.Client) { w.hole.Store(true); w.reset() },
	"stopped answering": func(t *testing.T, w *wire, client *redlatch.Client) {
		t.Helper()
		loadScripts(t, client)
		w.hole.Store(true)
	},
	"closed its connections": func(t *testing.T, w *wire, client *redlatch.Client) {
		t.Helper()
		loadScripts(t, client)
		w.refuse.Store(true)
		w.reset()
	},
}

// eachDown runs play once per way in which Redis can be down.
func eachDown(t *testing.T, timeout time.Duration, play func(t *testing.T, l *rlock.Lock)) {
	t.Helper()
	for name, away := range downs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, client := wired(t, 0, redlatch.WithCommandTimeout(timeout))
				away(t, w, client)
				synctest.Wait()
				play(t, rlock.New(client, "job"))
			})
		})
	}
}

// requireTransportError checks that the error is about the connection and not about the lock.
func requireTransportError(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.True(t, errors.Is(err, redlatch.ErrNotSent) || errors.Is(err, redlatch.ErrUncertain), "%v", err)
	require.NotErrorIs(t, err, redlatch.ErrNotAcquired)
	require.NotErrorIs(t, err, redlatch.ErrLost)
	require.NotErrorIs(t, err, redlatch.ErrClosed)
}

func TestU9AcquireFailsWhileRedisIsDown(t *testing.T) {
	eachDown(t, 1500*time.Millisecond, func(t *testing.T, l *rlock.Lock) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, w := range []*waiter{
			inBackground(func() (*rlock.Hold, error) { return l.TryLock(ctx) }),
			await(ctx, l),
			await(ctx, l, rlock.WithLease(forever)),
			await(ctx, l, rlock.WithWatchdog(forever)),
		} {
			err := w.failed(t, time.Second+time.Millisecond)
			requireTransportError(t, err)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
	})
}

func TestU9QueriesFailWhileRedisIsDown(t *testing.T) {
	eachDown(t, 2*time.Second, func(t *testing.T, l *rlock.Lock) {
		t.Helper()
		for name, ask := range map[string]func(ctx context.Context) error{
			"IsLocked":    func(ctx context.Context) error { _, err := l.IsLocked(ctx); return err },
			"HoldCount":   func(ctx context.Context) error { _, err := l.HoldCount(ctx, codec.Owner{}); return err },
			"TTL":         func(ctx context.Context) error { _, err := l.TTL(ctx); return err },
			"ForceUnlock": func(ctx context.Context) error { _, err := l.ForceUnlock(ctx); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			began := time.Now()
			err := ask(ctx)
			cancel()
			requireTransportError(t, err)
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			require.Equal(t, 200*time.Millisecond, time.Since(began))
		}
	})
}

func TestU35WaitReturnsTransportErrorWhileRedisIsDown(t *testing.T) {
	eachDown(t, 6*time.Second, func(t *testing.T, l *rlock.Lock) {
		t.Helper()
		w := await(t.Context(), l, rlock.WithWait(2*time.Second))
		requireTransportError(t, w.failed(t, 2*time.Second+time.Millisecond))
	})
}

func TestU35UnboundedCallUsesCommandTimeout(t *testing.T) {
	eachDown(t, 2*time.Second, func(t *testing.T, l *rlock.Lock) {
		t.Helper()
		for _, w := range []*waiter{
			await(t.Context(), l), inBackground(func() (*rlock.Hold, error) { return l.TryLock(t.Context()) }),
		} {
			requireTransportError(t, w.failed(t, 3*time.Second)) // the last pause between dials may overrun by a second
		}
	})
}

// A waiter that has received a reply keeps waiting, and finally returns the transport error.
func TestU35WaiterReportsOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0, redlatch.WithPollCap(100*time.Millisecond))
		holdByHand(t, w.srv, "job", forever)
		waits := await(t.Context(), rlock.New(client, "job"), rlock.WithWait(2*time.Second))
		time.Sleep(time.Second)
		w.refuse.Store(true)
		w.reset()
		requireTransportError(t, waits.failed(t, soon))
		require.Equal(t, 2*time.Second, waits.took())
	})
}

type howLock struct {
	name string
	lock func(ctx context.Context, l *rlock.Lock) (*rlock.Hold, error)
}

var howLocks = []howLock{
	{"Lock", func(ctx context.Context, l *rlock.Lock) (*rlock.Hold, error) { return l.Lock(ctx) }},
	{"Lock with lease", func(ctx context.Context, l *rlock.Lock) (*rlock.Hold, error) {
		return l.Lock(ctx, rlock.WithLease(forever))
	}},
	{"TryLock", func(ctx context.Context, l *rlock.Lock) (*rlock.Hold, error) { return l.TryLock(ctx) }},
}

// slowReplies are ways in which the reply to an acquire is late or lost.
var slowReplies = map[string]struct {
	latency time.Duration // of commands
	slow    func(w *wire) (deliver func())
}{
	"late reply": {slow: (*wire).holdReplies},
	"lost reply": {slow: func(w *wire) func() {
		w.deaf.Store(true)
		return func() { w.deaf.Store(false); w.reset() }
	}},
	"late command": {latency: 3 * time.Second, slow: func(*wire) func() { return func() {} }},
}

func TestU5CanceledAcquireLeavesNoHold(t *testing.T) {
	const wait = 2 * time.Second
	for name, reply := range slowReplies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, client := wired(t, reply.latency, redlatch.WithCommandTimeout(forever))
				loadScripts(t, client)
				deliver := reply.slow(w)
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				tries := []*waiter{await(t.Context(), rlock.New(client, "bounded"), rlock.WithWait(wait))}
				for _, how := range howLocks {
					tries = append(tries, inBackground(func() (*rlock.Hold, error) { return how.lock(ctx, rlock.New(client, how.name)) }))
				}
				for i, try := range tries {
					err := try.failed(t, wait+time.Millisecond)
					require.Equal(t, wait, try.took())
					require.Equal(t, i > 0, errors.Is(err, context.DeadlineExceeded))
					require.ErrorIs(t, err, redlatch.ErrUncertain)
					require.NotErrorIs(t, err, redlatch.ErrNotAcquired, "no reply reported a holder")
				}
				err := rlock.New(client, "job").Do(ctx, func(context.Context) error {
					require.Fail(t, "entered after the deadline")
					return nil
				})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				time.Sleep(reply.latency)
				require.Len(t, keysLike(t, w.srv, "*"), len(tries))
				deliver()
				time.Sleep(soon)
				require.Empty(t, keysLike(t, w.srv, "*"))
			})
		})
	}
}

// The lease of the other holder ends, the waiter is granted the lock, and stops waiting before the
// reply arrives.
func TestU5WaiterCanceledInLaterAttemptLeavesNoHold(t *testing.T) {
	for name, opts := range map[string][]rlock.Option{"own": nil, "given": {rlock.WithOwner(newOwner())}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, client := wired(t, 0, noPoll())
				loadScripts(t, client)
				holdByHand(t, w.srv, "job", soon)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				waits := await(ctx, rlock.New(client, "job"), opts...)
				time.Sleep(soon - time.Millisecond)
				speak := w.holdReplies()
				time.Sleep(100 * time.Millisecond)
				require.NotContains(t, owners(t, w.srv, "job"), foreignOwner)
				require.True(t, locked(t, w.srv, "job"))
				waits.stillWaits(t)
				cancel()
				err := waits.failed(t, time.Millisecond)
				require.ErrorIs(t, err, context.Canceled)
				if name == "given" { // its user must resolve the attempt
					require.ErrorIs(t, err, redlatch.ErrUncertain)
					require.NotErrorIs(t, err, redlatch.ErrNotAcquired)
				}
				speak()
				time.Sleep(time.Second)
				require.Equal(t, name == "given", locked(t, w.srv, "job"))
			})
		})
	}
}

func TestU34CanceledContextSendsNothing(t *testing.T) {
	t.Parallel()
	tr := &counter{}
	l := rlock.New(over(t, tr), "job")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs []error
	for _, how := range howLocks {
		hold, err := how.lock(ctx, l)
		require.Nil(t, hold)
		errs = append(errs, err)
	}
	_, err := l.IsLocked(ctx)
	errs = append(errs, err)
	_, err = l.Resume(ctx, newOwner())
	errs = append(errs, err)
	_, err = l.ForceUnlock(ctx)
	for _, err := range append(errs, err) {
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, redlatch.ErrNotSent)
	}
	require.Zero(t, tr.sent())
}
