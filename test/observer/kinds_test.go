package observer_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
)

// acquirer acquires something, or with try only tries, and returns what gives it back.
type acquirer func(ctx context.Context, try bool) (give func() error, err error)

// maker makes a lock of one kind.
type maker func(t *testing.T, c *redlatch.Client, name string) acquirer

// locks are the kinds, each with the kind that its events have.
var locks = map[string]maker{
	"plain": func(_ *testing.T, c *redlatch.Client, name string) acquirer { return of(rlock.New(c, name)) },
	"fair":  func(_ *testing.T, c *redlatch.Client, name string) acquirer { return of(rfairlock.New(c, name)) },
	"fenced": func(_ *testing.T, c *redlatch.Client, name string) acquirer {
		return ofFenced(rfencedlock.New(c, name))
	},
	"fair-fenced": func(_ *testing.T, c *redlatch.Client, name string) acquirer {
		return ofFenced(rfencedlock.NewFair(c, name))
	},
	"read": func(t *testing.T, c *redlatch.Client, name string) acquirer {
		t.Helper()
		rw := rreadwritelock.New(c, name)
		first := true
		return func(ctx context.Context, try bool) (func() error, error) {
			if first { // a writer is in the way of the others
				first = false
				return of(rw.Write())(context.WithValue(ctx, mark{"caller"}, "writer"), try)
			}
			return of(rw.Read())(ctx, try)
		}
	},
	"write": func(_ *testing.T, c *redlatch.Client, name string) acquirer {
		return of(rreadwritelock.New(c, name).Write())
	},
	"permits": func(t *testing.T, c *redlatch.Client, name string) acquirer {
		t.Helper()
		s := rsemaphore.NewExpirable(c, name)
		_, err := s.TrySetPermits(t.Context(), 1)
		require.NoError(t, err)
		return func(ctx context.Context, try bool) (func() error, error) {
			call := s.Acquire
			if try {
				call = s.TryAcquire
			}
			h, err := call(ctx, 1)
			if err != nil {
				return nil, err
			}
			return h.Release, nil
		}
	},
	"counter": func(t *testing.T, c *redlatch.Client, name string) acquirer {
		t.Helper()
		s := rsemaphore.New(c, name)
		_, err := s.TrySet(t.Context(), 1, 0)
		require.NoError(t, err)
		return func(ctx context.Context, try bool) (func() error, error) {
			call := s.Acquire
			if try {
				call = s.TryAcquire
			}
			if err := call(ctx, 1); err != nil {
				return nil, err
			}
			return func() error { return s.Release(context.Background(), 1) }, nil
		}
	},
	"multi": func(_ *testing.T, c *redlatch.Client, name string) acquirer {
		l := rmultilock.New(c, name, name+"'")
		return func(ctx context.Context, try bool) (func() error, error) {
			call := l.Lock
			if try {
				call = l.TryLock
			}
			h, err := call(ctx)
			if err != nil {
				return nil, err
			}
			return h.Unlock, nil
		}
	},
}

func of(l *rlock.Lock) acquirer {
	return func(ctx context.Context, try bool) (func() error, error) {
		call := l.Lock
		if try {
			call = l.TryLock
		}
		h, err := call(ctx)
		if err != nil {
			return nil, err
		}
		return h.Unlock, nil
	}
}

func ofFenced(l *rfencedlock.Lock) acquirer {
	return func(ctx context.Context, try bool) (func() error, error) {
		call := l.Lock
		if try {
			call = l.TryLock
		}
		h, err := call(ctx)
		if err != nil {
			return nil, err
		}
		return h.Unlock, nil
	}
}

// A call that is refused, one that waits, is woken and gets the lock, and its hold's end: each
// event has the caller's values, and those of the event that it follows.
func TestAnObserverSeesEveryKindFromItsBeginToItsEnd(t *testing.T) {
	t.Parallel()
	for kind, newLock := range locks {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var all []seen
			// A caller that is not asleep yet when the lock is freed needs no waking.
			for pause := 20 * time.Millisecond; pause < 10*time.Second && !wasWoken(by(all, "second")); pause *= 5 {
				all = fromBeginToEnd(t, newLock, pause)
			}
			checkCall(t, kind, by(all, "second"))
		})
	}
}

// fromBeginToEnd plays a call that is refused, and one that waits for so long at least, and
// returns the events.
func fromBeginToEnd(t *testing.T, newLock maker, pause time.Duration) []seen {
	t.Helper()
	_, client, w := watched(t)
	acquire := newLock(t, client, redistest.Key(t))
	give, err := acquire(context.WithValue(t.Context(), mark{"caller"}, "first"), false)
	require.NoError(t, err)
	_, refused := acquire(context.WithValue(t.Context(), mark{"caller"}, "refused"), true)
	require.ErrorIs(t, refused, redlatch.ErrNotAcquired)

	type got struct {
		give func() error
		err  error
	}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), mark{"caller"}, "second"))
	done := make(chan got, 1)
	go func() {
		give, err := acquire(ctx, false)
		done <- got{give, err}
	}()
	find(t, w, func(redlatch.Queued) bool { return true })
	time.Sleep(pause)
	require.NoError(t, give())
	second := <-done
	require.NoError(t, second.err)
	cancel() // the call's context ends before the hold
	require.NoError(t, second.give())

	all := w.since()
	checkRefusal(t, refused, by(all, "refused"))
	return all
}

func wasWoken(all []seen) bool {
	return slices.ContainsFunc(all, func(s seen) bool { _, woken := s.event.(redlatch.Woken); return woken })
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

// checkCall holds that the events of a call that waited are complete and in order.
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
			require.Zero(t, i, "it comes first")
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

// follows holds that the context of an event is the one that another one's was returned for.
func follows(t *testing.T, event string, s seen) {
	t.Helper()
	require.NotNil(t, s.chain, "%T", s.event)
	require.Contains(t, s.chain, event+" ", "%T", s.event)
}

func checkRefusal(t *testing.T, refused error, all []seen) {
	t.Helper()
	require.GreaterOrEqual(t, len(all), 2)
	require.IsType(t, redlatch.Started{}, all[0].event)
	last, ok := all[len(all)-1].event.(redlatch.NotAcquired)
	require.True(t, ok, "%T", all[len(all)-1].event)
	require.True(t, errors.Is(refused, redlatch.ErrNotAcquired) && errors.Is(last.Err, redlatch.ErrNotAcquired))
	follows(t, "redlatch.Started", all[len(all)-1])
}
