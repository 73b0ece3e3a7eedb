package rlock_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// closeTimeout is the command timeout of closed clients, which limits Close. It is longer than a
// round trip.
const closeTimeout = 4 * time.Second

// closes closes the client in the background and returns a function that checks that it has closed
// in time.
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
	requireOnly(t, err, "try-lock", l.Name(), redlatch.ErrClosed)
	_, err = l.IsLocked(t.Context())
	requireOnly(t, err, "is-locked", l.Name(), redlatch.ErrClosed)
	_, err = l.ForceUnlock(t.Context())
	requireOnly(t, err, "force-unlock", l.Name(), redlatch.ErrClosed)
}

func TestCloseIsBoundedOnFrozenServer(t *testing.T) {
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
		// A canceled caller's call is uncertain, and is resolved when the client closes.
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
		require.Zero(t, logged.count("cannot resolve call"))
		requireClosedFor(t, l)
	})
}

// Uncertain calls are retried. Close must not also wait for the last retry.
func TestCloseIsBoundedWithUncertainCalls(t *testing.T) {
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
	synctest.Test(t, func(t *testing.T) {
		lan, client := wired(t, 0, redlatch.WithCommandTimeout(closeTimeout))
		loadScripts(t, client)
		speak := lan.holdReplies()
		w := await(t.Context(), rlock.New(client, "job"))
		synctest.Wait()
		require.True(t, locked(t, lan.srv, "job"))
		done := closes(t, client, closeTimeout)
		err := w.failed(t, time.Millisecond)
		require.ErrorIs(t, err, redlatch.ErrClosed)
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		speak()
		done()
		require.False(t, locked(t, lan.srv, "job"))
	})
}

func TestCloseAwaitsReleaseOfSharedOwner(t *testing.T) {
	for name, release := range map[string]func(t *testing.T, l *rlock.Lock, outer *rlock.Hold){
		"canceled UnlockAs": func(t *testing.T, l *rlock.Lock, outer *rlock.Hold) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.ErrorIs(t, l.UnlockAs(ctx, outer.Owner()), redlatch.ErrUncertain)
		},
		"lost hold": func(t *testing.T, _ *rlock.Lock, _ *rlock.Hold) {
			t.Helper()
			time.Sleep(10 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Mini(t, embedded.WithInProcess())
				transport, client := callers.Stalling(t, srv, redlatch.WithCommandTimeout(closeTimeout))
				l, owner := rlock.New(client, "job"), newOwner()
				outer := take(t, l, rlock.WithOwner(owner), rlock.WithLease(time.Minute))
				take(t, l, rlock.WithOwner(owner), rlock.WithLease(10*time.Second))
				transport.Stall(true)
				release(t, l, outer)
				synctest.Wait()
				done := closes(t, client, closeTimeout)
				synctest.Wait()
				transport.Stall(false)
				done()
				require.Equal(t, map[string]string{owner.String(): "1"}, owners(t, srv, "job"))
			})
		})
	}
}

func TestCloseAwaitsUnresolvedReleaseOfSharedOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire, client := wired(t, 0, redlatch.WithCommandTimeout(closeTimeout))
		hold := take(t, rlock.New(client, "job"), rlock.WithOwner(newOwner()), rlock.WithLease(time.Minute))
		wire.hole.Store(true)
		time.AfterFunc(time.Second, wire.reset)
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrUncertain)
		done := closes(t, client, closeTimeout)
		synctest.Wait()
		wire.heal()
		done()
		require.False(t, locked(t, wire.srv, "job"))
	})
}

func TestCloseIsBoundedDuringDial(t *testing.T) {
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

func shutsDown(ctx context.Context, client *redlatch.Client) <-chan error {
	done := make(chan error, 1)
	go func() { done <- client.Shutdown(ctx) }()
	return done
}

// The bubble fails if a goroutine is left.
func TestCloseEndsManyWaitersAndHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		holds, waitersEach := testlevel.Rounds(20, 100), 10
		srv, client := inBubble(t)
		var held []*rlock.Hold
		var waiters []*waiter
		for i := range holds {
			l := rlock.New(client, fmt.Sprintf("lock-%d", i))
			if i%2 == 0 { // half in local queues, half subscribed
				held = append(held, take(t, l))
			} else {
				held = append(held, take(t, rlock.New(client, l.Name()+"-other"), rlock.WithLease(forever)))
				holdByHand(t, srv, l.Name(), forever)
			}
			for range waitersEach {
				waiters = append(waiters, await(t.Context(), l))
			}
		}
		synctest.Wait()
		for _, w := range waiters {
			w.stillWaits(t)
		}
		closes(t, client, time.Millisecond)()
		for _, w := range waiters {
			require.ErrorIs(t, w.failed(t, time.Millisecond), redlatch.ErrClosed)
		}
		for _, h := range held {
			require.ErrorIs(t, h.Err(), redlatch.ErrClosed)
			requireOnly(t, h.Unlock(), "unlock", h.Name(), redlatch.ErrClosed)
			require.Equal(t, map[string]string{h.Owner().String(): "1"}, owners(t, srv, h.Name()), "it expires with its lease")
		}
	})
}

func TestU38ShutdownWaitsOnlyForHolds(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		hold := take(t, s.l)
		holdByHand(t, s.srv, "foreign", time.Hour)
		local, remote, there := await(t.Context(), s.l), await(t.Context(), rlock.New(s.client, "foreign")), await(t.Context(), s.other)
		synctest.Wait()
		done := shutsDown(t.Context(), s.client)
		require.ErrorIs(t, local.failed(t, time.Millisecond), redlatch.ErrClosed)
		require.ErrorIs(t, remote.failed(t, time.Millisecond), redlatch.ErrClosed)
		requireClosedFor(t, s.l)
		_, err := s.l.Lock(hold.Context(t.Context()))
		require.ErrorIs(t, err, redlatch.ErrClosed, "a re-entry is new work")

		time.Sleep(time.Minute) // it is renewed as before
		require.NoError(t, hold.Err())
		require.Empty(t, done)
		require.NoError(t, hold.Unlock())
		synctest.Wait()
		require.Len(t, done, 1)
		require.NoError(t, <-done)
		require.NoError(t, there.acquired(t, soon).Unlock())
		require.NoError(t, s.client.Shutdown(t.Context()), "and again")
		s.srv.Do(t, "DEL", "foreign")
	})
}

func TestU38CanceledShutdownReportsRemainingHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		holds := []*rlock.Hold{take(t, rlock.New(client, "a")), take(t, rlock.New(client, "b"))}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := client.Shutdown(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "holds not unlocked: 2")
		for _, h := range holds {
			require.ErrorIs(t, h.Err(), redlatch.ErrClosed)
			require.ErrorIs(t, h.Unlock(), redlatch.ErrClosed)
			require.True(t, locked(t, srv, h.Name()))
		}
	})
}

func TestU38HandOverDuringShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		hold := take(t, rlock.New(client, "a"))
		done := shutsDown(t.Context(), client)
		synctest.Wait()
		owner, err := hold.HandOver()
		require.NoError(t, err)
		require.NoError(t, <-done)
		resumed, err := rlock.New(fakeClient(t, srv), "a").Resume(t.Context(), owner)
		require.NoError(t, err)
		require.NoError(t, resumed.Unlock())
	})
}

func TestU38CloseEndsShutdownImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		hold := take(t, rlock.New(client, "a"))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		patient := []<-chan error{shutsDown(t.Context(), client), shutsDown(t.Context(), client)}
		synctest.Wait()
		for _, done := range patient {
			require.Empty(t, done)
		}
		impatient := shutsDown(ended, client)
		closes(t, client, time.Millisecond)()
		<-impatient // Close may have been faster
		for _, done := range patient {
			require.ErrorIs(t, <-done, redlatch.ErrClosed, "a hold remained")
		}
		require.ErrorIs(t, hold.Err(), redlatch.ErrClosed)
		require.True(t, locked(t, srv, "a"))
	})
}

// A grant that arrives during Shutdown is either awaited or released. The rounds shut down at each
// moment of a few turns, which take two round trips each.
func TestU38ShutdownDuringGrantsLeavesNoLock(t *testing.T) {
	t.Parallel()
	for round := range 12 {
		synctest.Test(t, func(t *testing.T) {
			w, client := wired(t, time.Millisecond)
			loadScripts(t, client)
			l := rlock.New(client, "job")
			ended := make(chan error, 8)
			for range cap(ended) {
				go func() {
					for {
						if err := l.Do(context.Background(), func(context.Context) error { return nil }); err != nil {
							ended <- err
							return
						}
					}
				}()
			}
			time.Sleep(time.Duration(round) * time.Millisecond / 2)
			require.NoError(t, client.Shutdown(t.Context()))
			for range cap(ended) {
				require.ErrorIs(t, <-ended, redlatch.ErrClosed)
			}
			require.False(t, locked(t, w.srv, "job"))
		})
	}
}
