package rlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// sentinels are the errors that callers tell apart.
var sentinels = []error{
	redlatch.ErrNotAcquired, redlatch.ErrNotHeld, redlatch.ErrLost, redlatch.ErrClosed, redlatch.ErrUncertain,
	redlatch.ErrNotSent, redlatch.ErrWrongType, redlatch.ErrInvalid, context.DeadlineExceeded, context.Canceled,
}

// requireOnly holds that the error is the given ones and no other, that it names
// the lock, and that its details can be read.
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

func TestU33ContentionIsDistinguishedFromGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "job")
		holdByHand(t, srv, "job", forever)
		_, err := l.TryLock(t.Context())
		details := requireOnly(t, err, "trylock", "job", redlatch.ErrNotAcquired)
		require.Equal(t, forever, details.TTL)
		require.Equal(t, client.ID(), details.Owner.Client())
		require.ErrorContains(t, err, "left")

		_, err = l.Lock(t.Context(), rlock.WithWait(time.Second))
		requireOnly(t, err, "lock", "job", redlatch.ErrNotAcquired)
		timed, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err = l.Lock(timed)
		requireOnly(t, err, "lock", "job", redlatch.ErrNotAcquired, context.DeadlineExceeded)

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

func TestU33InfrastructureIsDistinguishedFromContention(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, client := through(t, s, redlatch.WithCommandTimeout(time.Second))
	name := redistest.Key(t)
	l := rlock.New(client, name)

	p.CutReplyAfter(0)
	_, err := l.TryLock(t.Context())
	requireOnly(t, err, "trylock", name, redlatch.ErrUncertain)

	p.Refuse(true)
	p.Reset()
	awaitBroken(t, client)
	_, err = l.TryLock(t.Context())
	requireOnly(t, err, "trylock", name, redlatch.ErrNotSent)
	_, err = l.Lock(t.Context())
	requireOnly(t, err, "lock", name, redlatch.ErrNotSent)
	_, err = l.TTL(t.Context())
	requireOnly(t, err, "ttl", name, redlatch.ErrNotSent)
	p.Refuse(false)

	s.Do(t, "ACL", "SETUSER", "reader", "on", ">pw", "~*", "&*", "+@read", "+@connection")
	reader := connect(t, "redis://reader:pw@"+s.Addr())
	_, err = rlock.New(reader, name).Lock(t.Context())
	requireOnly(t, err, "lock", name)
	require.True(t, transport.IsCode(err, "NOPERM"), err)
}

func TestU31LossIsDistinguishedFromUnlockingTwice(t *testing.T) {
	t.Parallel()
	s, client := onShared(t)
	lost := func(t *testing.T, hold *rlock.Hold) {
		t.Helper()
		details := requireOnly(t, hold.Unlock(), "unlock", hold.Name(), redlatch.ErrLost)
		require.Equal(t, hold.Owner(), details.Owner)
		requireOnly(t, hold.Unlock(), "unlock", hold.Name(), redlatch.ErrLost)
	}
	for name, lose := range map[string]func(t *testing.T, l *rlock.Lock){
		"deleted": func(t *testing.T, l *rlock.Lock) { t.Helper(); s.Do(t, "DEL", l.Name()) },
		"expired": func(t *testing.T, l *rlock.Lock) { t.Helper(); s.Do(t, "PEXPIRE", l.Name(), 0) },
		"taken by force": func(t *testing.T, l *rlock.Lock) {
			t.Helper()
			forced, err := l.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, forced)
		},
		"held by another": func(t *testing.T, l *rlock.Lock) { t.Helper(); holdByHand(t, s, l.Name(), forever) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := rlock.New(client, redistest.Key(t))
			hold := take(t, l)
			lose(t, l)
			lost(t, hold)
		})
	}
	t.Run("lease over", func(t *testing.T) {
		t.Parallel()
		hold := take(t, rlock.New(client, redistest.Key(t)), rlock.WithLease(2*time.Second))
		awaitClosed(t, hold.Context(t.Context()).Done(), 2*time.Second+slack, "the loss")
		lost(t, hold)
	})
	t.Run("unlocked twice", func(t *testing.T) {
		t.Parallel()
		hold := take(t, rlock.New(client, redistest.Key(t)))
		ctx := hold.Context(t.Context())
		require.NoError(t, hold.Unlock())
		require.NoError(t, hold.Unlock(), "the first result stays")
		require.ErrorIs(t, hold.Err(), redlatch.ErrNotHeld)
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrNotHeld)
		requireOnly(t, hold.LetExpire(), "let-expire", hold.Name(), redlatch.ErrNotHeld)
	})
}
