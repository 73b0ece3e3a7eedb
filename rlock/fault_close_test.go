package rlock_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// closeTimeout is the command timeout of clients that are closed, and so what
// Close may wait for. It is longer than slack: to wait for it twice is too long.
const closeTimeout = 4 * time.Second

// closes closes the client in the background and returns a check that it has closed in time.
func closes(t *testing.T, client *redlatch.Client, within time.Duration) (done func()) {
	t.Helper()
	closed := make(chan error, 1)
	timeout := time.After(within)
	go func() { closed <- client.Close() }()
	return func() {
		t.Helper()
		select {
		case err := <-closed:
			require.NoError(t, err)
		case <-timeout:
			require.FailNow(t, "Close has not returned")
		}
	}
}

// requireClosedFor checks that a closed client rejects every call.
func requireClosedFor(t *testing.T, l *rlock.Lock) {
	t.Helper()
	_, err := l.Lock(t.Context())
	requireOnly(t, err, "lock", l.Name(), redlatch.ErrClosed)
	_, err = l.TryLock(t.Context())
	requireOnly(t, err, "trylock", l.Name(), redlatch.ErrClosed)
	_, err = l.IsLocked(t.Context())
	requireOnly(t, err, "is-locked", l.Name(), redlatch.ErrClosed)
	_, err = l.ForceUnlock(t.Context())
	requireOnly(t, err, "force-unlock", l.Name(), redlatch.ErrClosed)
}

func TestCloseEndsWaitersAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL(), redlatch.WithCommandTimeout(closeTimeout))
	l := rlock.New(client, redistest.Key(t))
	holdByHand(t, s, l.Name(), forever)
	var waiters []*waiter
	for range 20 {
		waiters = append(waiters, await(t.Context(), l), await(t.Context(), l, rlock.WithWait(forever)))
	}
	awaitWaiters(t, s, l.Name())
	began := time.Now()
	done := closes(t, client, closeTimeout+slack)
	for _, w := range waiters {
		require.ErrorIs(t, w.failed(t, atOnce), redlatch.ErrClosed)
	}
	done()
	require.Less(t, time.Since(began), closeTimeout, "nothing was open")
	requireClosedFor(t, l)
	until(t, soon, "no connection", func() bool { return s.Clients(t) == 0 })
	require.Equal(t, map[string]string{foreignOwner: "1"}, owners(t, s, l.Name()))
}

func TestCloseEndsHoldsAndLeavesTheirLeases(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL(), redlatch.WithCommandTimeout(closeTimeout))
	renewed := take(t, rlock.New(client, redistest.Key(t)))
	fixed := take(t, rlock.New(client, redistest.Key(t)), rlock.WithLease(forever))
	began := time.Now()
	closes(t, client, closeTimeout+slack)()
	require.Less(t, time.Since(began), closeTimeout, "nothing was open")
	for _, hold := range []*rlock.Hold{renewed, fixed} {
		ctx := hold.Context(t.Context())
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrClosed)
		require.ErrorIs(t, hold.Err(), redlatch.ErrClosed)
		requireOnly(t, hold.Unlock(), "unlock", hold.Name(), redlatch.ErrClosed)
		require.Equal(t, map[string]string{hold.Owner().String(): "1"}, owners(t, s, hold.Name()))
		require.Positive(t, ttl(t, s, hold.Name()))
	}
	require.Zero(t, s.Clients(t))
}

func TestCloseWithCallsInFlightAgainstAFrozenServerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged, log := newJournal()
		wire, client := wired(t, 0, log, redlatch.WithCommandTimeout(closeTimeout))
		loadScripts(t, client)
		l, waiting := rlock.New(client, "job"), rlock.New(client, "held")
		hold := take(t, rlock.New(client, "own"))
		holdByHand(t, wire.srv, "held", forever)
		waiters := []*waiter{await(t.Context(), waiting)}
		synctest.Wait()
		wire.hole.Store(true)
		for range 5 {
			waiters = append(waiters,
				await(t.Context(), l),
				await(t.Context(), waiting),
				inBackground(func() (*rlock.Hold, error) { return l.TryLock(t.Context()) }))
		}
		// The call of a caller that has left is in doubt, and is resolved when the client closes.
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := l.TryLock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		unlocked := make(chan error, 1)
		go func() { unlocked <- hold.Unlock() }()
		synctest.Wait()
		done := closes(t, client, closeTimeout+time.Millisecond)
		for _, w := range waiters {
			require.ErrorIs(t, w.failed(t, time.Millisecond), redlatch.ErrClosed)
		}
		done()
		require.Error(t, <-unlocked)
		require.Zero(t, logged.count("cannot be settled"))
		requireClosedFor(t, l)
	})
}

// Calls in doubt are repeated. Close must not wait for the last repetition, too.
func TestCloseWithOpenDoubtsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire, client := wired(t, 0, redlatch.WithCommandTimeout(closeTimeout))
		loadScripts(t, client)
		wire.hole.Store(true)
		var waiters []*waiter
		for i := range 5 {
			l := rlock.New(client, strconv.Itoa(i))
			waiters = append(waiters, inBackground(func() (*rlock.Hold, error) { return l.TryLock(t.Context()) }))
		}
		time.Sleep(closeTimeout / 4)
		wire.reset()
		for _, w := range waiters {
			require.ErrorIs(t, w.failed(t, time.Millisecond), redlatch.ErrUncertain)
		}
		time.Sleep(closeTimeout / 8) // questions are under way
		closes(t, client, closeTimeout+time.Millisecond)()
	})
}

// What the server grants while the client closes is given back.
func TestCloseLeavesNoUnreleasedHold(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	p, client := through(t, s, redlatch.WithCommandTimeout(closeTimeout))
	l := rlock.New(client, redistest.Key(t))
	p.Blackhole(redistest.ToClient)
	w := await(t.Context(), l)
	until(t, soon, "the grant", func() bool { return locked(t, s, l.Name()) })
	done := closes(t, client, closeTimeout+slack)
	err := w.failed(t, atOnce)
	require.ErrorIs(t, err, redlatch.ErrClosed)
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	p.Heal()
	done()
	require.False(t, locked(t, s, l.Name()))
}

func TestCloseWhileDiallingAServerThatDoesNotAnswerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire, client := wired(t, 0, redlatch.WithCommandTimeout(closeTimeout), redlatch.WithClientName("named"))
		wire.hole.Store(true)
		wire.reset()
		synctest.Wait()
		w := await(t.Context(), rlock.New(client, "job"))
		time.Sleep(100 * time.Millisecond)
		done := closes(t, client, closeTimeout+time.Millisecond)
		require.ErrorIs(t, w.failed(t, time.Millisecond), redlatch.ErrClosed)
		done()
	})
}

func TestCloseManyTimesAtOnceReturnsOneResult(t *testing.T) {
	t.Parallel()
	_, client := onShared(t, redlatch.WithCommandTimeout(closeTimeout))
	loadScripts(t, client)
	var all []func()
	for range 10 {
		all = append(all, closes(t, client, closeTimeout+slack))
	}
	for _, done := range all {
		done()
	}
}
