package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// attemptsOf counts the attempts of a call that got the lock.
type attemptsOf struct{ n int }

func (o *attemptsOf) observer() redlatch.Observer {
	return redlatch.Observer{Acquired: func(ctx context.Context, e redlatch.Acquired) context.Context {
		o.n = e.Attempts
		return ctx
	}}
}

// A hash of another program is not waited for: the error says what is there, at the first attempt.
func TestAHashOfAnotherProgramIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		l := rlock.New(connect(t, s.URL()), redistest.Key(t))
		s.Do(t, "HSET", l.Name(), "age", 4, "name", "bob")
		ctx, cancel := context.WithTimeout(t.Context(), forever)
		defer cancel()
		_, err := l.Lock(ctx)
		requireOnly(t, err, "lock", l.Name(), redlatch.ErrWrongType)
		require.ErrorContains(t, err, `a hash with the field "age", which no owner has`)
		require.NotContains(t, err.Error(), "bob")
		_, err = l.TryLock(t.Context())
		requireOnly(t, err, "trylock", l.Name(), redlatch.ErrWrongType)
		redistest.UnlessTheMachineStalls(t, func() error { // a late reply is another error
			_, err = l.Lock(t.Context(), rlock.WithWait(time.Millisecond))
			if !errors.Is(err, redlatch.ErrWrongType) {
				return fmt.Errorf("not ErrWrongType, but %w", err)
			}
			return nil
		})
		requireOnly(t, err, "lock", l.Name(), redlatch.ErrWrongType)
	})
}

// The callers behind the first one in the process hear it, too.
func TestEachCallerHearsOfAHashOfAnotherProgram(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	l := rlock.New(connect(t, s.URL()), redistest.Key(t))
	s.Do(t, "HSET", l.Name(), "name", "bob")
	all := make([]*waiter, 5)
	for i := range all {
		all[i] = await(t.Context(), l)
	}
	for _, w := range all {
		requireOnly(t, w.failed(t, soon), "lock", l.Name(), redlatch.ErrWrongType)
	}
}

// Whatever Redisson may have written is waited for: other ids, other kinds of lock, and a lock
// that another program has put a field into.
func TestWhatMayBeALockIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	client := connect(t, s.URL())
	const id = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11"
	for what, fields := range map[string]string{
		"an id of its own":          "node-a:57 1",
		"a thread below zero":       "node-a:-57 1",
		"a writer":                  "mode write " + id + ":57:write 1",
		"a reader":                  "mode read " + id + ":57 1",
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

// The question costs a round trip where the first field is no owner's, once for an acquisition,
// and else nothing.
func TestAskingWhoseHashItIsCostsOneRoundTripAtMost(t *testing.T) {
	t.Parallel()
	for fields, extra := range map[string]int{"note lent node-a:57 1": 1, "node-a:57 1 note lent": 0} {
		s := redistest.Start(t)
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
