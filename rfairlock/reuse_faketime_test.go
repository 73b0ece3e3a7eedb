package rfairlock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// waitedFor returns a hold that had to wait, and the owner with which it was queued.
func waitedFor(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock, opts ...rlock.Option) (*rlock.Hold, string) {
	t.Helper()
	holdByHand(t, srv, l.Name(), time.Hour)
	w := await(t.Context(), l, opts...)
	synctest.Wait()
	queue := queueOf(t, srv, l.Name())
	require.Len(t, queue, 1)
	freeByHand(t, srv, l.Name())
	return w.acquired(t, time.Second), queue[0]
}

// channelsOf returns the channels that have a subscriber.
func channelsOf(t *testing.T, srv *redistest.MiniServer) []string {
	t.Helper()
	synctest.Wait()
	channels, err := redis.Strings(srv.Do(t, "PUBSUB", "CHANNELS"), nil)
	require.NoError(t, err)
	return channels
}

// ending is how a hold ends whose owner another one might have.
type ending struct {
	opts []rlock.Option
	end  func(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock, h *rlock.Hold)
}

func unlockIt(t *testing.T, _ *redistest.MiniServer, _ *rlock.Lock, h *rlock.Hold) {
	t.Helper()
	require.NoError(t, h.Unlock())
}

// after does something before it unlocks.
func after(do func(t *testing.T, l *rlock.Lock, h *rlock.Hold), opts ...rlock.Option) ending {
	return ending{opts, func(t *testing.T, _ *redistest.MiniServer, l *rlock.Lock, h *rlock.Hold) {
		t.Helper()
		do(t, l, h)
		require.NoError(t, h.Unlock())
	}}
}

func TestOwnerOfAHoldThatEndedWellIsUsedAgain(t *testing.T) {
	for name, e := range map[string]ending{
		"at once":            {end: unlockIt},
		"with another wait":  {opts: []rlock.Option{rlock.WithWait(time.Minute)}, end: unlockIt},
		"with a fixed lease": {opts: []rlock.Option{rlock.WithLease(10 * time.Second)}, end: unlockIt},
		"after a moment": after(func(*testing.T, *rlock.Lock, *rlock.Hold) {
			time.Sleep(900 * time.Millisecond)
		}),
		"with a context": after(func(t *testing.T, _ *rlock.Lock, h *rlock.Hold) {
			t.Helper()
			require.NoError(t, h.Context(t.Context()).Err())
		}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client, _ := inBubble(t)
				l := rfairlock.New(client, "job")
				h, owner := waitedFor(t, srv, l, e.opts...)
				e.end(t, srv, l, h)
				h, again := waitedFor(t, srv, l)
				require.Equal(t, owner, again)
				require.NoError(t, h.Unlock())
			})
		})
	}
}

// A call in flight for an owner, or a caller that knows it, would touch the next hold
// with that owner.
func TestOwnerIsNotUsedAgainWhenAnythingMayBeLeftOfIt(t *testing.T) {
	for name, e := range map[string]ending{
		"it was renewed": after(func(*testing.T, *rlock.Lock, *rlock.Hold) {
			time.Sleep(600 * time.Millisecond)
		}, rlock.WithWatchdog(1500*time.Millisecond)),
		"it was entered again": after(func(t *testing.T, l *rlock.Lock, h *rlock.Hold) {
			t.Helper()
			inner, err := l.Lock(h.Context(t.Context()))
			require.NoError(t, err)
			require.NoError(t, inner.Unlock())
		}),
		"it held for long": after(func(*testing.T, *rlock.Lock, *rlock.Hold) { time.Sleep(2 * time.Second) }),
		"it was done long ago": {end: func(t *testing.T, _ *redistest.MiniServer, _ *rlock.Lock, h *rlock.Hold) {
			t.Helper()
			require.NoError(t, h.Unlock())
			time.Sleep(2 * time.Second)
		}},
		"the lock was lost": {end: func(t *testing.T, srv *redistest.MiniServer, l *rlock.Lock, h *rlock.Hold) {
			t.Helper()
			srv.Do(t, "DEL", l.Name())
			require.ErrorIs(t, h.Unlock(), redlatch.ErrLost)
		}},
		"it had reached its maximum": {[]rlock.Option{rlock.WithMaxHold(500 * time.Millisecond)}, func(t *testing.T, _ *redistest.MiniServer, _ *rlock.Lock, h *rlock.Hold) {
			t.Helper()
			time.Sleep(600 * time.Millisecond)
			require.ErrorIs(t, h.Unlock(), redlatch.ErrMaxHold)
		}},
		"it was left to its lease": {end: func(t *testing.T, _ *redistest.MiniServer, _ *rlock.Lock, h *rlock.Hold) {
			t.Helper()
			require.NoError(t, h.LetExpire())
		}},
		"it was handed over": {end: func(t *testing.T, _ *redistest.MiniServer, l *rlock.Lock, h *rlock.Hold) {
			t.Helper()
			owner, err := h.HandOver()
			require.NoError(t, err)
			require.NoError(t, l.UnlockAs(t.Context(), owner))
		}},
		"it was given": {[]rlock.Option{rlock.WithOwner(redlatch.NewOwner([16]byte{1}, 7))}, unlockIt},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client, _ := inBubble(t)
				l := rfairlock.New(client, "job")
				h, owner := waitedFor(t, srv, l, e.opts...)
				e.end(t, srv, l, h)
				require.Empty(t, channelsOf(t, srv), "and its channel has no subscriber")
				h, again := waitedFor(t, srv, l)
				require.NotEqual(t, owner, again)
				require.NoError(t, h.Unlock())
			})
		})
	}
}

// losing is a transport that loses the reply to the next call of one script, or does
// not send it.
type losing struct {
	*counting
	script atomic.Pointer[transport.Script]
	unsent bool
}

// Start is part of transport.Transport.
func (l *losing) Start(call *transport.Call, done transport.Done) {
	if !l.script.CompareAndSwap(call.Script, nil) || call.Script == nil {
		l.counting.Start(call, done)
		return
	}
	if l.unsent {
		done(nil, fmt.Errorf("%w: cut", redlatch.ErrNotSent))
		return
	}
	l.counting.Start(call, func(any, error) { done(nil, fmt.Errorf("%w: cut", redlatch.ErrUncertain)) })
}

func TestOwnerIsNotUsedAgainWhenACallForItHadNoAnswer(t *testing.T) {
	for name, script := range map[string]*transport.Script{"attempt": luasrc.FairAcquire, "release": luasrc.FairRelease} {
		for _, unsent := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", unsent ", unsent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv, _, calls := inBubble(t)
					tr := &losing{counting: calls, unsent: unsent}
					client, err := redlatch.NewWithTransport(tr)
					require.NoError(t, err)
					defer func() { require.NoError(t, client.Close()) }()
					l := rfairlock.New(client, "job")
					holdByHand(t, srv, "job", time.Hour)
					w := await(t.Context(), l)
					synctest.Wait()
					owner := queueOf(t, srv, "job")[0]
					tr.script.Store(script)
					freeByHand(t, srv, "job")
					h := w.acquired(t, 5*time.Second)
					require.NoError(t, h.Unlock())
					require.Nil(t, tr.script.Load(), "it was sent")
					require.Empty(t, channelsOf(t, srv))
					time.Sleep(100 * time.Millisecond)
					_, again := waitedFor(t, srv, l)
					require.NotEqual(t, owner, again)
				})
			})
		}
	}
}

func TestSubscriptionsEndSoonAfterTheLastWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		l := rfairlock.New(client, "job")
		h, owner := waitedFor(t, srv, l)
		require.Equal(t, []string{codec.OwnerChannel("job", owner)}, channelsOf(t, srv), "while it holds")
		require.NoError(t, h.Unlock())
		for range 20 { // no caller has to wait any more
			time.Sleep(100 * time.Millisecond)
			h, err := l.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Unlock())
		}
		require.Empty(t, channelsOf(t, srv))

		h, _ = waitedFor(t, srv, l)
		time.Sleep(1600 * time.Millisecond)
		require.Empty(t, channelsOf(t, srv), "while it is held on")
		require.NoError(t, h.Unlock())
		require.Empty(t, channelsOf(t, srv))
	})
}

// A place without a waiter, but with a subscriber, would block the waiters behind it.
func TestAWaiterThatGivesUpIsUnsubscribed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		l := rfairlock.New(client, "job")
		h, owner := waitedFor(t, srv, l)
		require.NoError(t, h.Unlock())
		holdByHand(t, srv, "job", time.Hour)
		for i := range 3 { // with the owner of before, and with those that subscribe first
			ctx, cancel := context.WithCancel(t.Context())
			w := await(ctx, l)
			channels, queue := channelsOf(t, srv), queueOf(t, srv, "job")
			require.Equal(t, i == 0, queue[0] == owner)
			require.Equal(t, []string{codec.OwnerChannel("job", queue[0])}, channels)
			cancel()
			require.ErrorIs(t, w.failed(t, time.Second), context.Canceled)
			require.Empty(t, channelsOf(t, srv))
			require.Empty(t, queueOf(t, srv, "job"))
		}
	})
}

func TestClosedClientHasNoSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		l := rfairlock.New(client, "job")
		h, _ := waitedFor(t, srv, l)
		require.NoError(t, h.Unlock())
		other, _ := waitedFor(t, srv, rfairlock.New(client, "other"))
		require.NoError(t, client.Close())
		require.Empty(t, channelsOf(t, srv))
		require.ErrorIs(t, other.Unlock(), redlatch.ErrClosed)
	})
}

// The message was meant for the hold of before: it makes the next one ask once.
func TestMessageForTheOwnersFormerWaitCostsOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		l := rfairlock.New(client, "job")
		h, owner := waitedFor(t, srv, l)
		tell := func() { srv.Do(t, "PUBLISH", codec.OwnerChannel("job", owner), codec.MessageUnlock) }
		tell() // while it holds the lock
		require.NoError(t, h.Unlock())
		tell()
		synctest.Wait()
		holdByHand(t, srv, "job", time.Hour)
		before := calls.n.Load()
		ctx, cancel := context.WithCancel(t.Context())
		w := await(ctx, l)
		synctest.Wait()
		require.Equal(t, []string{owner}, queueOf(t, srv, "job"))
		require.Equal(t, before+1, calls.n.Load(), "those that came before are nothing to it")
		deadline := deadlinesOf(t, srv, "job")
		time.Sleep(time.Second)
		tell() // late
		synctest.Wait()
		require.Equal(t, before+2, calls.n.Load())
		require.Equal(t, deadline, deadlinesOf(t, srv, "job"), "it keeps its place")
		w.stillWaits(t)
		cancel()
		require.ErrorIs(t, w.failed(t, time.Second), context.Canceled)
	})
}

// slowUntil takes its time with each release that is reported, until goOn is closed.
func slowUntil(goOn <-chan struct{}) redlatch.Observer {
	return redlatch.Observer{Released: func(context.Context, redlatch.Released) { <-goOn }}
}

// An observer sees the holds of one owner one after the other.
func TestOwnerIsNotUsedAgainBeforeItsReleaseWasReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		srv, client, _ := inBubble(t, redlatch.WithObserver(slowUntil(goOn)))
		l := rfairlock.New(client, "job")
		h, owner := waitedFor(t, srv, l)
		unlocked := make(chan error, 1)
		go func() { unlocked <- h.Unlock() }()
		synctest.Wait()
		require.False(t, locked(t, srv, "job"))
		next, other := waitedFor(t, srv, l)
		require.NotEqual(t, owner, other)
		close(goOn)
		require.NoError(t, <-unlocked)
		require.NoError(t, next.Unlock())
	})
}

// The context of a released hold proves nothing, even if another hold has its owner
// now.
func TestProofOfTheFormerHoldDoesNotProveTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		l := rfairlock.New(client, "job")
		former, owner := waitedFor(t, srv, l)
		proof := former.Context(t.Context())
		require.NoError(t, former.Unlock())
		next, again := waitedFor(t, srv, l)
		require.Equal(t, owner, again)
		_, err := l.TryLock(context.WithoutCancel(proof))
		checkHeld(t, err)
		require.NoError(t, former.Unlock())
		require.ErrorIs(t, former.LetExpire(), redlatch.ErrNotHeld)
		_, err = former.HandOver()
		require.ErrorIs(t, err, redlatch.ErrNotHeld)
		require.ErrorIs(t, former.Err(), redlatch.ErrNotHeld)
		require.NoError(t, next.Err())
		require.Equal(t, map[string]string{owner: "1"}, owners(t, srv, "job"))
		require.NoError(t, next.Unlock())
	})
}

// The detector of another process has seen the owner with the deadline of its former
// wait.
func TestEvictionOfTheOwnersFormerEntryLeavesTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		l := rfairlock.New(client, "job")
		holdByHand(t, srv, "job", time.Hour)
		w := await(t.Context(), l)
		synctest.Wait()
		owner, seen := queueOf(t, srv, "job")[0], deadlinesOf(t, srv, "job")
		freeByHand(t, srv, "job")
		require.NoError(t, w.acquired(t, time.Second).Unlock())
		time.Sleep(10 * time.Millisecond)
		holdByHand(t, srv, "job", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		w = await(ctx, l)
		synctest.Wait()
		require.Equal(t, []string{owner}, queueOf(t, srv, "job"))
		srv.Do(t, "EVAL", luasrc.FairEvict.Text(), 4, "job", codec.QueueKey("job"), codec.TimeoutKey("job"), codec.LockChannel("job"),
			time.Now().UnixMilli(), 15_000, "PUBLISH", codec.MessageUnlock, owner, seen[owner])
		require.Equal(t, []string{owner}, queueOf(t, srv, "job"))
		cancel()
		require.ErrorIs(t, w.failed(t, time.Second), context.Canceled)
	})
}

// A caller that cannot subscribe first is queued all the same, and soon.
func TestContendedLockQueuesCallersThatCannotSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _, calls := inBubble(t)
		client, err := redlatch.NewWithTransport(&slowSubscriber{calls, func() {}})
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		l := rfairlock.New(client, "job")
		holdByHand(t, srv, "job", time.Hour)
		_, end := waitTogether(t, l, 1)
		ctx, cancel := context.WithCancel(t.Context())
		w := await(ctx, l)
		time.Sleep(600 * time.Millisecond)
		synctest.Wait()
		require.Len(t, queueOf(t, srv, "job"), 2)
		cancel()
		checkHeld(t, w.failed(t, time.Second))

		// With little time, it asks at once.
		w = await(t.Context(), l, rlock.WithWait(100*time.Millisecond))
		synctest.Wait()
		require.Len(t, queueOf(t, srv, "job"), 2)
		checkHeld(t, w.failed(t, time.Second))

		// A caller that leaves before it is queued has waited, and leaves no
		// entry.
		ctx, cancel = context.WithCancel(t.Context())
		w = await(ctx, l)
		synctest.Wait()
		require.Len(t, queueOf(t, srv, "job"), 1)
		cancel()
		checkHeld(t, w.failed(t, time.Second))
		end()
	})
}
