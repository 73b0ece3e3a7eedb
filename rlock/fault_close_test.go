package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// closeTimeout is the command timeout of clients that are closed, and so what
// Close may wait for. It is longer than slack: to wait for it twice is too long.
const closeTimeout = 4 * time.Second

// closes closes the client in the background and returns a check that it has
// closed in time.
func closes(t *testing.T, client *redlatch.Client) (done func()) {
	t.Helper()
	closed := make(chan error, 1)
	began := time.Now()
	go func() { closed <- client.Close() }()
	return func() {
		t.Helper()
		select {
		case err := <-closed:
			require.NoError(t, err)
		case <-time.After(time.Until(began.Add(closeTimeout + slack))):
			require.FailNow(t, "Close is still there")
		}
	}
}

// requireClosedFor holds that a closed client refuses every call.
func requireClosedFor(t *testing.T, l *rlock.Lock) {
	t.Helper()
	_, err := l.Lock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrClosed)
	_, err = l.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrClosed)
	_, err = l.IsLocked(t.Context())
	require.ErrorIs(t, err, redlatch.ErrClosed)
	_, err = l.ForceUnlock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrClosed)
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
	done := closes(t, client)
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
	closes(t, client)()
	require.Less(t, time.Since(began), closeTimeout, "nothing was open")
	for _, hold := range []*rlock.Hold{renewed, fixed} {
		ctx := hold.Context(t.Context())
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrClosed)
		require.ErrorIs(t, hold.Err(), redlatch.ErrClosed)
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrClosed)
		require.Equal(t, map[string]string{hold.Owner().String(): "1"}, owners(t, s, hold.Name()))
		require.Positive(t, ttl(t, s, hold.Name()))
	}
	require.Zero(t, s.Clients(t))
}

func TestCloseWithCallsInFlightAgainstAFrozenServerIsBounded(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	logged, log := newJournal()
	client := connect(t, s.URL(), log, redlatch.WithCommandTimeout(closeTimeout))
	loadScripts(t, client)
	l := rlock.New(client, redistest.Key(t))
	hold := take(t, rlock.New(client, redistest.Key(t)))
	waiting := rlock.New(client, redistest.Key(t))
	holdByHand(t, s, waiting.Name(), forever)
	waiters := []*waiter{await(t.Context(), waiting)}
	awaitWaiters(t, s, waiting.Name())
	s.Pause()
	defer s.Resume()
	for range 5 {
		waiters = append(waiters,
			await(t.Context(), l),
			await(t.Context(), waiting),
			inBackground(func() (*rlock.Hold, error) { return l.TryLock(t.Context()) }))
	}
	// One caller has left already, and its doubt is open: calls to settle it
	// are under way when the client closes.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := l.TryLock(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	unlocked := make(chan error, 1)
	go func() { unlocked <- hold.Unlock() }()
	awaitClosed(t, hold.Context(t.Context()).Done(), soon, "the unlock under way")

	done := closes(t, client)
	for _, w := range waiters {
		require.ErrorIs(t, w.failed(t, atOnce), redlatch.ErrClosed)
	}
	done()
	require.Error(t, <-unlocked)
	require.Zero(t, logged.count("cannot be settled"))
	requireClosedFor(t, l)
}

// Doubts are asked about again and again: Close must not wait for the question
// of the moment after it has waited for all of them.
func TestCloseWithOpenDoubtsIsBounded(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, client := through(t, s, redlatch.WithCommandTimeout(closeTimeout))
	s.Pause()
	defer s.Resume()
	var waiters []*waiter
	for range 5 {
		l := rlock.New(client, redistest.Key(t))
		waiters = append(waiters, inBackground(func() (*rlock.Hold, error) { return l.TryLock(t.Context()) }))
	}
	<-time.After(closeTimeout / 4) // the calls are in the network
	p.Reset()
	for _, w := range waiters {
		require.ErrorIs(t, w.failed(t, atOnce), redlatch.ErrUncertain)
	}
	<-time.After(closeTimeout / 8) // so that questions are under way when the wait ends
	began := time.Now()
	require.NoError(t, client.Close())
	require.Less(t, time.Since(began), closeTimeout+slack)
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
	closed := make(chan error, 1)
	go func() { closed <- client.Close() }()
	err := w.failed(t, atOnce)
	require.ErrorIs(t, err, redlatch.ErrClosed)
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	p.Heal()
	select {
	case err := <-closed:
		require.NoError(t, err)
	case <-time.After(closeTimeout + slack):
		require.FailNow(t, "Close is still there")
	}
	require.False(t, locked(t, s, l.Name()))
}

func TestCloseWhileDiallingAServerThatDoesNotAnswerIsBounded(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithPassword("secret"))
	s.Pause()
	defer s.Resume()
	client := undialled(t, s.Addr(), redlatch.WithCommandTimeout(closeTimeout), redlatch.WithClientName("named"))
	l := rlock.New(client, redistest.Key(t))
	w := await(t.Context(), l)
	<-time.After(100 * time.Millisecond) // somewhere in the dial
	done := closes(t, client)
	require.ErrorIs(t, w.failed(t, atOnce), redlatch.ErrClosed)
	done()
}

func TestCloseManyTimesAtOnceReturnsOneResult(t *testing.T) {
	t.Parallel()
	_, client := onShared(t, redlatch.WithCommandTimeout(closeTimeout))
	loadScripts(t, client)
	var all []func()
	for range 10 {
		all = append(all, closes(t, client))
	}
	for _, done := range all {
		done()
	}
}
