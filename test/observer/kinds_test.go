package observer_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
)

// acquirer acquires something, or only tries to, and returns a function that releases it.
type acquirer func(ctx context.Context, try bool) (release func() error, err error)

// choose returns the function to call.
func choose[F any](call, attempt F, try bool) F {
	if try {
		return attempt
	}
	return call
}

// of returns the acquirer for a lock with these methods.
func of[H interface{ Unlock() error }](lock, tryLock func(context.Context, ...rlock.Option) (H, error)) acquirer {
	return func(ctx context.Context, try bool) (func() error, error) {
		h, err := choose(lock, tryLock, try)(ctx)
		if err != nil {
			return nil, err
		}
		return h.Unlock, nil
	}
}

func ofLock(l *rlock.Lock) acquirer { return of(l.Lock, l.TryLock) }

// locks are the kinds, by the kind in their events.
var locks = map[string]func(t *testing.T, c *redlatch.Client) acquirer{
	"plain": func(_ *testing.T, c *redlatch.Client) acquirer { return ofLock(rlock.New(c, "k")) },
	"fair":  func(_ *testing.T, c *redlatch.Client) acquirer { return ofLock(rfairlock.New(c, "k")) },
	"write": func(_ *testing.T, c *redlatch.Client) acquirer { return ofLock(rreadwritelock.New(c, "k").Write()) },
	"fenced": func(_ *testing.T, c *redlatch.Client) acquirer {
		l := rfencedlock.New(c, "k")
		return of(l.Lock, l.TryLock)
	},
	"fair-fenced": func(_ *testing.T, c *redlatch.Client) acquirer {
		l := rfencedlock.NewFair(c, "k")
		return of(l.Lock, l.TryLock)
	},
	"multi": func(_ *testing.T, c *redlatch.Client) acquirer {
		l := rmultilock.New(c, "k", "k'")
		return of(l.Lock, l.TryLock)
	},
	"read": func(_ *testing.T, c *redlatch.Client) acquirer {
		rw := rreadwritelock.New(c, "k")
		first := true
		return func(ctx context.Context, try bool) (func() error, error) {
			if first { // a writer blocks the readers
				first = false
				return ofLock(rw.Write())(context.WithValue(ctx, mark{"caller"}, "writer"), try)
			}
			return ofLock(rw.Read())(ctx, try)
		}
	},
	"permits": func(t *testing.T, c *redlatch.Client) acquirer {
		t.Helper()
		s := rsemaphore.NewExpirable(c, "k")
		_, err := s.TrySetPermits(t.Context(), 1)
		require.NoError(t, err)
		return func(ctx context.Context, try bool) (func() error, error) {
			h, err := choose(s.Acquire, s.TryAcquire, try)(ctx, 1)
			if err != nil {
				return nil, err
			}
			return h.Release, nil
		}
	},
	"counter": func(t *testing.T, c *redlatch.Client) acquirer {
		t.Helper()
		s := rsemaphore.New(c, "k")
		_, err := s.TrySetPermits(t.Context(), 1, 0)
		require.NoError(t, err)
		return func(ctx context.Context, try bool) (func() error, error) {
			err := choose(s.Acquire, s.TryAcquire, try)(ctx, 1)
			return func() error { return s.Release(context.Background(), 1) }, err
		}
	},
}

// One call is refused. Another call waits, is woken, and acquires a hold that ends. Each event has the values of its
// caller and of the event that it follows.
func TestObserverSeesEachKindFromStartToEnd(t *testing.T) {
	t.Parallel()
	for kind, newLock := range locks {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(x *scene) {
				acquire := newLock(x.T, x.client)
				release, err := acquire(calling(x.T, "first"), false)
				require.NoError(x, err)
				_, refused := acquire(calling(x.T, "refused"), true)
				require.ErrorIs(x, refused, redlatch.ErrNotAcquired)
				ctx, cancel := context.WithCancel(calling(x.T, "second"))
				came := make(chan func() error, 1)
				go func() {
					release, err := acquire(ctx, false)
					assert.NoError(x, err)
					came <- release
				}()
				synctest.Wait()
				require.NoError(x, release())
				second := <-came
				cancel() // the hold outlives the context of the call
				require.NoError(x, second())
				synctest.Wait()
				all := x.w.since()
				checkRefusal(x.T, by(all, "refused"))
				checkCall(x.T, kind, by(all, "second"))
			})
		})
	}
}

// by returns the events of one caller.
func by(all []seen, caller string) (of []seen) {
	for _, s := range all {
		if s.caller == caller {
			of = append(of, s)
		}
	}
	return of
}

// checkCall requires that the events for a call that waited are complete and in order.
func checkCall(t *testing.T, kind string, all []seen) {
	t.Helper()
	of, holds := kind, 1
	if kind == "multi" {
		of, holds = "plain", 2
	}
	var started redlatch.Started
	var queued, woken, refused, acquired, ended, released int
	for i, s := range all {
		switch e := s.event.(type) {
		case redlatch.Started:
			require.Zero(t, i)
			require.Nil(t, s.chain)
			started = e
		case redlatch.Queued:
			queued++
			follows(t, "redlatch.Started", s)
		case redlatch.Woken:
			woken++
			require.Positive(t, queued)
			follows(t, "redlatch.Started", s)
		case redlatch.Attempted:
			require.Equal(t, of, e.Kind)
			require.NoError(t, e.Err)
			require.Zero(t, acquired)
			refused++
			require.Equal(t, refused, e.Attempt)
			follows(t, "redlatch.Started", s)
		case redlatch.Acquired:
			acquired++
			require.Equal(t, e.Attempts, refused+1)
			require.Equal(t, kind == "counter", e.NoHold)
			follows(t, "redlatch.Started", s)
		case redlatch.Ended:
			ended++
			require.Equal(t, holds, acquired)
			require.NoError(t, s.err, "the context of a hold does not end")
			follows(t, "redlatch.Acquired", s)
		case redlatch.Released:
			released++
			require.NoError(t, s.err)
			follows(t, "redlatch.Acquired", s)
		default:
			assert.Fail(t, "unexpected", "%T", e)
		}
	}
	require.Equal(t, of, started.Kind)
	require.Equal(t, holds, started.Locks)
	require.Equal(t, 1, queued)
	require.Positive(t, woken)
	require.Equal(t, holds, acquired)
	if kind == "counter" {
		holds = 0
	}
	require.Equal(t, holds, ended)
	require.Equal(t, holds, released)
}

// follows requires that the context of an event is from another event.
func follows(t *testing.T, event string, s seen) {
	t.Helper()
	require.NotNil(t, s.chain, "%T", s.event)
	require.Contains(t, s.chain, event+" ", "%T", s.event)
}

func checkRefusal(t *testing.T, all []seen) {
	t.Helper()
	require.GreaterOrEqual(t, len(all), 2)
	require.IsType(t, redlatch.Started{}, all[0].event)
	last, ok := all[len(all)-1].event.(redlatch.NotAcquired)
	require.True(t, ok, "%T", all[len(all)-1].event)
	require.ErrorIs(t, last.Err, redlatch.ErrNotAcquired)
	follows(t, "redlatch.Started", all[len(all)-1])
}
