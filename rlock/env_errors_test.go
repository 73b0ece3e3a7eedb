package rlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// sentinels are all the errors that callers may tell apart.
var sentinels = []error{
	redlatch.ErrNotAcquired, redlatch.ErrNotHeld, redlatch.ErrLost, redlatch.ErrClosed,
	redlatch.ErrUncertain, redlatch.ErrNotSent, redlatch.ErrWrongType,
	redlatch.ErrInvalid, redlatch.ErrInvalid, redlatch.ErrInvalid,
	context.DeadlineExceeded, context.Canceled,
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
	t.Parallel()
	s, client := onShared(t)
	name := redistest.Key(t)
	l := rlock.New(client, name)
	holdByHand(t, s, name, forever)

	_, err := l.TryLock(t.Context())
	details := requireOnly(t, err, "trylock", name, redlatch.ErrNotAcquired)
	require.Greater(t, details.TTL, forever/2)
	require.Equal(t, client.ID().String(), details.Owner.String()[:36])
	require.ErrorContains(t, err, "left")

	waits := await(t.Context(), l, rlock.WithWait(refusal))
	timed, stop := context.WithTimeout(t.Context(), refusal)
	defer stop()
	_, err = rlock.New(connect(t, s.URL()), name).Lock(timed) // at the same time
	requireOnly(t, err, "lock", name, redlatch.ErrNotAcquired, context.DeadlineExceeded)
	requireOnly(t, waits.failed(t, soon), "lock", name, redlatch.ErrNotAcquired)

	reason := errors.New("the user has gone")
	for _, cause := range []error{nil, reason} {
		until(t, soon, "those before have gone", func() bool { return listeners(t, s, name) == 0 })
		canceled, cancel := context.WithCancelCause(t.Context())
		w := await(canceled, l)
		awaitWaiters(t, s, name)
		cancel(cause)
		err = w.failed(t, atOnce)
		requireOnly(t, err, "lock", name, redlatch.ErrNotAcquired, context.Canceled)
		require.Equal(t, cause != nil, errors.Is(err, reason))
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.Lock(ended)
	requireOnly(t, err, "lock", name, redlatch.ErrNotSent, context.Canceled)
	_, err = l.IsLocked(ended)
	requireOnly(t, err, "is-locked", name, redlatch.ErrNotSent, context.Canceled)
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

func TestU31LossDuringTheRunOfDoIsJoinedToItsError(t *testing.T) {
	t.Parallel()
	s, client := onShared(t)
	name := redistest.Key(t)
	l := rlock.New(client, name)
	own := errors.New("the work's own error")
	for _, result := range []error{nil, own} {
		err := l.Do(t.Context(), func(context.Context) error {
			s.Do(t, "DEL", name)
			return result
		})
		require.ErrorIs(t, err, redlatch.ErrLost)
		require.Equal(t, result != nil, errors.Is(err, own))
		require.ErrorContains(t, err, limits.Quote(name))
	}
}

func TestU31MistakesAreNamedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL())
	name := redistest.Key(t)
	l := rlock.New(client, name)
	for _, c := range []struct {
		want error
		opts []rlock.Option
	}{
		{redlatch.ErrInvalid, []rlock.Option{rlock.WithLease(0)}},
		{redlatch.ErrInvalid, []rlock.Option{rlock.WithLease(-time.Second)}},
		{redlatch.ErrInvalid, []rlock.Option{rlock.WithWatchdog(time.Microsecond)}},
		{redlatch.ErrInvalid, []rlock.Option{rlock.WithLease(time.Second), rlock.WithWatchdog(time.Second)}},
	} {
		_, err := l.Lock(t.Context(), c.opts...)
		requireOnly(t, err, "lock", name, c.want)
	}
	_, err := l.TryLock(t.Context(), rlock.WithWait(time.Second))
	requireOnly(t, err, "trylock", name, redlatch.ErrInvalid)
	for _, bad := range []string{"", "not \xff UTF-8"} {
		l := rlock.New(client, bad)
		_, err := l.Lock(t.Context())
		requireOnly(t, err, "lock", bad, redlatch.ErrInvalid)
		_, err = l.IsLocked(t.Context())
		requireOnly(t, err, "is-locked", bad, redlatch.ErrInvalid)
	}
	stats := s.CommandStats(t)
	require.Zero(t, stats["eval"]+stats["evalsha"]+stats["exists"])
}

func TestU31ClosedIsDistinguishedFromTheRest(t *testing.T) {
	t.Parallel()
	_, client := onShared(t)
	name := redistest.Key(t)
	l := rlock.New(client, name)
	hold := take(t, l)
	require.NoError(t, client.Close())
	_, err := l.Lock(t.Context())
	requireOnly(t, err, "lock", name, redlatch.ErrClosed)
	_, err = l.TryLock(t.Context())
	requireOnly(t, err, "trylock", name, redlatch.ErrClosed)
	_, err = l.HoldCount(t.Context(), hold.Owner())
	requireOnly(t, err, "hold-count", name, redlatch.ErrClosed)
	requireOnly(t, hold.Unlock(), "unlock", name, redlatch.ErrClosed)
}
