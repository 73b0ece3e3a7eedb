package rlock_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// closeTimeout is the command timeout of clients that are closed: the limit of Close. It is longer
// than slack, so waiting twice is too long.
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

// Calls in doubt are repeated. Close must not also wait for the last repetition.
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
		time.Sleep(closeTimeout / 8)
		closes(t, client, closeTimeout+time.Millisecond)()
	})
}

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

func shutsDown(ctx context.Context, client *redlatch.Client) <-chan error {
	done := make(chan error, 1)
	go func() { done <- client.Shutdown(ctx) }()
	return done
}

func resultOf(t *testing.T, done <-chan error, within time.Duration) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(within):
		require.FailNow(t, "no result", "within %v", within)
		return nil
	}
}

// Not parallel: it counts goroutines.
func TestCloseEndsAThousandWaitersAndAHundredHolds(t *testing.T) {
	const holds, waitersEach = 100, 10
	s := redistest.Start(t)
	baseline := runtime.NumGoroutine()
	client, err := redlatch.Open(t.Context(), s.URL(), redlatch.WithCommandTimeout(closeTimeout))
	require.NoError(t, err)
	var held []*rlock.Hold
	var waiters []*waiter
	for i := range holds {
		l := rlock.New(client, fmt.Sprintf("lock-%d", i))
		if i%2 == 0 { // half in local queues, half subscribed
			held = append(held, take(t, l))
		} else {
			held = append(held, take(t, rlock.New(client, l.Name()+"-other")))
			holdByHand(t, s, l.Name(), forever)
		}
		for range waitersEach {
			waiters = append(waiters, await(t.Context(), l))
		}
	}
	until(t, soon, "the listeners", func() bool { return len(s.Channels(t)) == holds/2 })
	for _, w := range waiters {
		w.stillWaits(t)
	}
	closes(t, client, closeTimeout+slack)()
	for _, w := range waiters {
		require.ErrorIs(t, w.failed(t, soon), redlatch.ErrClosed)
	}
	for _, h := range held {
		require.ErrorIs(t, h.Err(), redlatch.ErrClosed)
		require.True(t, locked(t, s, h.Name()), "it is left to its lease")
	}
	until(t, soon, "no connection", func() bool { return s.Clients(t) == 0 })
	until(t, soon, "no goroutine", func() bool { return runtime.NumGoroutine() <= baseline+1 }) // the test's connection
}

func TestU38ShutdownWaitsForTheHoldsAndForNothingElse(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL())
	a, b := take(t, rlock.New(client, "a"), rlock.WithWatchdog(shortLease)), take(t, rlock.New(client, "b"))
	holdByHand(t, s, "foreign", forever)
	local, remote := await(t.Context(), rlock.New(client, "a")), await(t.Context(), rlock.New(client, "foreign"))
	awaitWaiters(t, s, "foreign")

	done := shutsDown(t.Context(), client)
	require.ErrorIs(t, local.failed(t, atOnce), redlatch.ErrClosed)
	require.ErrorIs(t, remote.failed(t, atOnce), redlatch.ErrClosed)
	requireClosedFor(t, rlock.New(client, "c"))
	_, err := rlock.New(client, "a").Lock(a.Context(t.Context()))
	require.ErrorIs(t, err, redlatch.ErrClosed, "a re-entry is new work, too")

	require.NoError(t, b.Unlock())
	awaitRenewal(t, s, "a") // it goes on as before
	require.NoError(t, a.Err())
	require.Empty(t, done)
	require.NoError(t, a.Unlock())
	require.NoError(t, resultOf(t, done, atOnce))
	require.False(t, locked(t, s, "a"))
	require.False(t, locked(t, s, "b"))
	require.Zero(t, s.Clients(t))
	require.NoError(t, client.Shutdown(t.Context()), "and again")
}

func TestU38ShutdownWhoseContextEndsSaysHowManyHoldsWereLeft(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL())
	a, b := take(t, rlock.New(client, "a")), take(t, rlock.New(client, "b"))
	ctx, cancel := context.WithCancel(t.Context())
	done := shutsDown(ctx, client)
	awaitClosedFor(t, rlock.New(client, "c"))
	require.NoError(t, a.Err())
	cancel()
	err := resultOf(t, done, soon)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "2 holds")
	for _, h := range []*rlock.Hold{a, b} {
		require.ErrorIs(t, h.Err(), redlatch.ErrClosed)
		require.ErrorIs(t, h.Unlock(), redlatch.ErrClosed)
		require.True(t, locked(t, s, h.Name()))
	}
	until(t, soon, "the server sees its connections closed", func() bool { return s.Clients(t) == 0 })
}

// awaitClosedFor returns when the client refuses new work.
func awaitClosedFor(t *testing.T, l *rlock.Lock) {
	t.Helper()
	until(t, soon, "new work is refused", func() bool {
		_, err := l.IsLocked(t.Context())
		return assert.ObjectsAreEqual(err != nil, true)
	})
	requireClosedFor(t, l)
}

func TestU38AHoldIsHandedOverDuringShutdown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL())
	hold := take(t, rlock.New(client, "a"))
	done := shutsDown(t.Context(), client)
	awaitClosedFor(t, rlock.New(client, "c"))
	owner, err := hold.HandOver()
	require.NoError(t, err)
	require.NoError(t, resultOf(t, done, atOnce))
	resumed, err := rlock.New(connect(t, s.URL()), "a").Resume(t.Context(), owner)
	require.NoError(t, err)
	require.NoError(t, resumed.Unlock())
}

func TestU38ShutdownAndCloseTogetherEndAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL())
	hold := take(t, rlock.New(client, "a"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	patient := []<-chan error{shutsDown(t.Context(), client), shutsDown(t.Context(), client)}
	awaitClosedFor(t, rlock.New(client, "c"))
	for _, done := range patient {
		require.Empty(t, done)
	}
	impatient := shutsDown(ended, client)
	closed := make(chan error, 1)
	go func() { closed <- client.Close() }()
	require.NoError(t, resultOf(t, closed, soon))
	_ = resultOf(t, impatient, soon) // Close may have been faster
	for _, done := range patient {
		require.ErrorIs(t, resultOf(t, done, soon), redlatch.ErrClosed, "a hold was left")
	}
	require.ErrorIs(t, hold.Err(), redlatch.ErrClosed)
	require.True(t, locked(t, s, "a"))
	require.Zero(t, s.Clients(t))
}

// A grant that arrives during Shutdown is either awaited or released.
func TestU38ShutdownBesideGrantsLeavesNoLockBehind(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for round := range 30 {
		client, err := redlatch.Open(t.Context(), s.URL())
		require.NoError(t, err)
		l := rlock.New(client, fmt.Sprintf("lock-%d", round))
		ended := make(chan error, 8)
		for range cap(ended) {
			go func() {
				for {
					hold, err := l.Lock(context.Background())
					if err != nil {
						ended <- err
						return
					}
					if err := hold.Unlock(); err != nil {
						ended <- err
						return
					}
				}
			}()
		}
		<-time.After(time.Duration(round) * 200 * time.Microsecond)
		require.NoError(t, client.Shutdown(t.Context()))
		for range cap(ended) {
			require.ErrorIs(t, resultOf(t, ended, soon), redlatch.ErrClosed)
		}
		require.False(t, locked(t, s, l.Name()))
	}
}
