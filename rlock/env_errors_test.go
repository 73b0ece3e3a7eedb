package rlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

var sentinels = []error{
	redlatch.ErrNotAcquired, redlatch.ErrNotHeld, redlatch.ErrLost, redlatch.ErrClosed, redlatch.ErrUncertain,
	redlatch.ErrNotSent, redlatch.ErrWrongType, redlatch.ErrInvalid, context.DeadlineExceeded, context.Canceled,
}

// requireOnly checks that err is exactly the given errors, names the operation and the lock, and
// returns its details.
func requireOnly(t *testing.T, err error, op, name string, want ...error) *redlatch.LockError {
	t.Helper()
	require.Error(t, err)
	for _, s := range sentinels {
		require.Equal(t, slices.Contains(want, s), errors.Is(err, s), "%v in %q", s, err)
	}
	var details *redlatch.LockError
	require.ErrorAs(t, err, &details)
	require.Equal(t, name, details.Name)
	require.Equal(t, op, details.Op)
	require.ErrorContains(t, err, op+" "+limits.Quote(name))
	return details
}

func TestU33ContentionDiffersFromCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "job")
		holdByHand(t, srv, "job", forever)
		_, err := l.TryLock(t.Context())
		details := requireOnly(t, err, "try-lock", "job", redlatch.ErrNotAcquired)
		require.Equal(t, forever, details.TTL)
		require.Equal(t, client.ID(), details.Owner.Client())
		require.ErrorContains(t, err, "left")

		for _, wait := range []time.Duration{0, 7 * time.Second} {
			began := time.Now()
			_, err = l.Lock(t.Context(), rlock.WithWait(wait))
			details = requireOnly(t, err, "lock", "job", redlatch.ErrNotAcquired)
			require.Equal(t, wait, time.Since(began))
			require.Equal(t, forever, details.TTL.Round(10*time.Second), "the holder's remaining lease at the last attempt")
		}
		began := time.Now()
		timed, stop := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer stop()
		_, err = l.Lock(timed, rlock.WithWait(time.Minute))
		requireOnly(t, err, "lock", "job", redlatch.ErrNotAcquired, context.DeadlineExceeded)
		require.Equal(t, 1500*time.Millisecond, time.Since(began))

		reason := errors.New("the user has gone")
		for _, cause := range []error{nil, reason} {
			canceled, cancel := context.WithCancelCause(t.Context())
			w := await(canceled, l)
			synctest.Wait()
			cancel(cause)
			err = w.failed(t, time.Millisecond)
			requireOnly(t, err, "lock", "job", redlatch.ErrNotAcquired, context.Canceled)
			require.Equal(t, cause != nil, errors.Is(err, reason))
		}

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = l.Lock(ended)
		requireOnly(t, err, "lock", "job", redlatch.ErrNotSent, context.Canceled)
		_, err = l.IsLocked(ended)
		requireOnly(t, err, "is-locked", "job", redlatch.ErrNotSent, context.Canceled)
	})
}

// The first call runs on the server, the second does not.
func TestU33TransportErrorDiffersFromContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0)
		loadScripts(t, client)
		l := rlock.New(client, "job")
		for _, lost := range []*atomic.Bool{&w.deaf, &w.hole} {
			lost.Store(true)
			try := inBackground(func() (*rlock.Hold, error) { return l.TryLock(t.Context()) })
			synctest.Wait()
			require.Equal(t, lost == &w.deaf, locked(t, w.srv, "job"))
			lost.Store(false)
			w.reset()
			requireOnly(t, try.failed(t, time.Millisecond), "try-lock", "job", redlatch.ErrUncertain)
			time.Sleep(2 * time.Second)
			require.False(t, locked(t, w.srv, "job"))
		}

		w.refuse.Store(true)
		w.reset()
		synctest.Wait()
		_, err := l.TryLock(t.Context())
		requireOnly(t, err, "try-lock", "job", redlatch.ErrNotSent)
		_, err = l.Lock(t.Context())
		requireOnly(t, err, "lock", "job", redlatch.ErrNotSent)
		_, err = l.TTL(t.Context())
		requireOnly(t, err, "ttl", "job", redlatch.ErrNotSent)
	})
}

func TestU31U43LossDiffersFromDoubleUnlock(t *testing.T) {
	t.Parallel()
	for name, forget := range vanishings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv, client := inBubble(t)
				hold, kept := take(t, rlock.New(client, "job")), take(t, rlock.New(client, "neighbor"))
				time.Sleep(17 * time.Second)
				require.NoError(t, hold.Err())
				forget(t, srv, client)
				awaitLoss(t, hold, 10*time.Second) // a renewal period
				if name != "flushed" {             // the renewal script for both keeps it
					time.Sleep(time.Minute)
					require.NoError(t, kept.Unlock())
				}

				srv.Do(t, "DEL", "job", "job-away")
				hold = take(t, rlock.New(client, "job"))
				forget(t, srv, client)
				want := []error{redlatch.ErrLost}
				if name == "overwritten" {
					want = append(want, redlatch.ErrWrongType)
				}
				first := hold.Unlock()
				details := requireOnly(t, first, "unlock", "job", want...)
				require.Equal(t, hold.Owner(), details.Owner)
				require.Same(t, first, hold.Unlock())
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"))
		ctx := hold.Context(t.Context())
		require.NoError(t, hold.Unlock())
		require.NoError(t, hold.Unlock(), "later calls return the first result")
		require.ErrorIs(t, hold.Err(), redlatch.ErrNotHeld)
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrNotHeld)
		requireOnly(t, hold.LetExpire(), "let-expire", "job", redlatch.ErrNotHeld)
		require.NoError(t, hold.Unlock())

		hold = take(t, rlock.New(client, "job"), rlock.WithLease(2*time.Second))
		awaitLoss(t, hold, 2*time.Second)
		requireOnly(t, hold.Unlock(), "unlock", "job", redlatch.ErrLost)
	})
}

func TestU43EveryCallReportsWrongType(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		client := connect(t, s.URL())
		name := redistest.Key(t)
		l := rlock.New(client, name)
		hold := take(t, l)
		s.Do(t, "SET", name, "a cache's")

		requireOnly(t, hold.Unlock(), "unlock", name, redlatch.ErrLost, redlatch.ErrWrongType)
		_, err := l.Lock(t.Context())
		requireOnly(t, err, "lock", name, redlatch.ErrWrongType)
		_, err = l.TryLock(t.Context())
		requireOnly(t, err, "try-lock", name, redlatch.ErrWrongType)
		_, err = l.HoldCount(t.Context(), hold.Owner())
		requireOnly(t, err, "hold-count", name, redlatch.ErrWrongType)

		value, err := redis.String(s.Do(t, "GET", name), nil)
		require.NoError(t, err)
		require.Equal(t, "a cache's", value)
		require.Equal(t, int64(-1), s.Do(t, "PTTL", name), "it was not given a lease")
	})
}

func TestU43WaiterFailsWhenKeyChangesType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		holdByHand(t, srv, "foreign", forever)
		take(t, rlock.New(client, "own"))
		for _, name := range []string{"foreign", "own"} {
			w := await(t.Context(), rlock.New(client, name))
			synctest.Wait()
			srv.Do(t, "SET", name, "a cache's")
			requireOnly(t, w.failed(t, 11*time.Second), "lock", name, redlatch.ErrWrongType)
		}
	})
}

type attemptsOf struct{ n int }

func (o *attemptsOf) observer() redlatch.Observer {
	return redlatch.Observer{Acquired: func(ctx context.Context, e redlatch.Acquired) context.Context {
		o.n = e.Attempts
		return ctx
	}}
}

func TestForeignHashIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		l := rlock.New(connect(t, s.URL()), redistest.Key(t))
		s.Do(t, "HSET", l.Name(), "age", 4, "name", "bob")
		_, err := l.TryLock(t.Context()) // first, because Lock would wait if this fails
		requireOnly(t, err, "try-lock", l.Name(), redlatch.ErrWrongType)
		ctx, cancel := context.WithTimeout(t.Context(), forever)
		defer cancel()
		_, err = l.Lock(ctx)
		requireOnly(t, err, "lock", l.Name(), redlatch.ErrWrongType)
		require.ErrorContains(t, err, `a hash with the field "age", which is not an owner`)
		require.NotContains(t, err.Error(), "bob")
	})
}

func TestEveryCallerReportsForeignHash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "job")
		srv.Do(t, "HSET", "job", "name", "bob")
		all := []*waiter{await(t.Context(), l, rlock.WithWait(time.Millisecond))}
		for range 5 {
			all = append(all, await(t.Context(), l))
		}
		for _, w := range all {
			requireOnly(t, w.failed(t, time.Second), "lock", "job", redlatch.ErrWrongType)
		}
	})
}

func TestPossibleLockIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	client := connect(t, s.URL())
	const id = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11"
	for what, fields := range map[string]string{
		"a custom id":               "node-a:57 1",
		"a negative thread id":      "node-a:-57 1",
		"a transaction":             id + ":57:" + id + " 1",
		"the group of a multi-lock": "order " + id + ":57 order:" + id + ":57:expire_time 9 order:" + id + ":57:lock_count 1",
		"a field besides the owner": "note lent " + id + ":57 1",
	} {
		name := redistest.Key(t) + what
		args := []any{name}
		for _, word := range strings.Fields(fields) {
			args = append(args, word)
		}
		s.Do(t, "HSET", args...)
		_, err := rlock.New(client, name).TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired, what)
		require.NotErrorIs(t, err, redlatch.ErrWrongType, what)
	}
}

func TestForeignHashCheckTakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for fields, extra := range map[string]int{"note lent node-a:57 1": 1, "node-a:57 1 note lent": 0} {
		s.Do(t, "CONFIG", "RESETSTAT")
		seen := &attemptsOf{}
		client := connect(t, s.URL(), redlatch.WithPollCap(50*time.Millisecond), redlatch.WithObserver(seen.observer()))
		l := rlock.New(client, "job")
		require.NoError(t, take(t, l).Unlock())
		args := []any{"job"}
		for _, word := range strings.Fields(fields) {
			args = append(args, word)
		}
		s.Do(t, "HSET", args...)
		w := await(t.Context(), l)
		until(t, soon, "several attempts", func() bool { return s.CommandStats(t)["hkeys"] >= 5 })
		s.Do(t, "DEL", "job")
		require.NoError(t, w.acquired(t, soon).Unlock())
		refused := seen.n - 1
		require.EqualValues(t, refused+extra, s.CommandStats(t)["hkeys"], fields)
	}
}
