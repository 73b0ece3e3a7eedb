package rfairlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

const (
	gone     = 2 * time.Second   // bounds, in fake time, how long a waiter that left stays in the queue
	fairWait = 300 * time.Second // is the default wait
)

// between is a waiter in the queue between two others.
type between struct {
	srv       redistest.Target
	l         *rlock.Lock
	w         *waiter
	owner     string
	deadlines map[string]int64
}

// queueBetween waits until the waiter has subscribed.
func queueBetween(ctx context.Context, t *testing.T, srv redistest.Target, l *rlock.Lock, opts ...rlock.Option) *between {
	t.Helper()
	b := unsubscribedBetween(ctx, t, srv, l, opts...)
	until(t, soon, "the listener", func() bool { return listeners(t, srv, l.Name(), b.owner) > 0 })
	return b
}

func unsubscribedBetween(ctx context.Context, t *testing.T, srv redistest.Target, l *rlock.Lock, opts ...rlock.Option) *between {
	t.Helper()
	holdByHand(t, srv, l.Name(), forever)
	queueByHand(t, srv, l.Name(), foreignHead, time.Now().Add(forever))
	b := &between{srv: srv, l: l, w: await(ctx, l, opts...)}
	b.owner = awaitQueue(t, srv, l.Name(), 2)[1]
	own := deadlinesOf(t, b.srv, b.l.Name())[b.owner]
	require.Positive(t, own)
	queueByHand(t, b.srv, b.l.Name(), foreignTail, time.UnixMilli(own).Add(forever))
	b.deadlines = deadlinesOf(t, b.srv, b.l.Name())
	return b
}

// requireGone waits until the place is gone, and checks that nothing else changed.
func (b *between) requireGone(t *testing.T, wait time.Duration) {
	t.Helper()
	b.requireGoneBut(t, wait)
	require.Equal(t, []string{foreignHead, foreignTail}, queueOf(t, b.srv, b.l.Name()))
	require.Len(t, deadlinesOf(t, b.srv, b.l.Name()), 2)
	require.Equal(t, map[string]string{foreignOwner: "1"}, owners(t, b.srv, b.l.Name()))
}

// requireGoneBut is like requireGone, but for a caller that may have queued again.
func (b *between) requireGoneBut(t *testing.T, wait time.Duration) {
	t.Helper()
	until(t, gone, "the queue entry is removed", func() bool {
		_, has := deadlinesOf(t, b.srv, b.l.Name())[b.owner]
		return !has
	})
	require.NotContains(t, queueOf(t, b.srv, b.l.Name()), b.owner)
	left := deadlinesOf(t, b.srv, b.l.Name())
	require.Equal(t, b.deadlines[foreignHead], left[foreignHead])
	require.Equal(t, b.deadlines[foreignTail]-wait.Milliseconds(), left[foreignTail])
	until(t, gone, "no subscriber", func() bool { return listeners(t, b.srv, b.l.Name(), b.owner) == 0 })
}

func TestU26CanceledWaiterLeavesQueue(t *testing.T) {
	for name, listens := range map[string]bool{"before it subscribes": false, "while it is subscribed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client, calls := inBubble(t, noPoll())
				queued := queueBetween
				if !listens {
					calls.subscribe = neverSubscribes(func() {})
					queued = unsubscribedBetween
				}
				ctx, cancel := context.WithCancel(t.Context())
				b := queued(ctx, t, srv, rfairlock.New(client, "job"))
				synctest.Wait() // for the attempt's reply
				cancel()
				err := b.w.failed(t, promptly)
				require.ErrorIs(t, err, context.Canceled)
				checkHeld(t, err)
				b.requireGone(t, fairWait)
			})
		})
	}
}

// WithWait(0) is one attempt, as in Redisson. Other waits below a millisecond are mistakes.
func TestWaitBelowMillisecondIsRejectedExceptZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		for _, l := range []*rlock.Lock{rfairlock.New(client, "fair"), rlock.New(client, "plain")} {
			for _, wait := range []time.Duration{1, time.Microsecond, time.Millisecond - 1, -time.Second} {
				_, err := l.Lock(t.Context(), rlock.WithWait(wait))
				require.ErrorIs(t, err, redlatch.ErrInvalid)
			}
			hold, err := l.Lock(t.Context(), rlock.WithWait(0))
			require.NoError(t, err)
			_, err = l.Lock(t.Context(), rlock.WithWait(0))
			checkHeld(t, err)
			require.NotErrorIs(t, err, redlatch.ErrNotSent)
			var refusal *redlatch.LockError
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, hold.Owner(), refusal.Holder)
			require.NoError(t, hold.Unlock())
			requireNoTrace(t, srv, l.Name())
		}
	})
}

func TestU26TimedOutWaiterLeavesQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t, noPoll())
		const wait = 3*time.Second + 1500*time.Microsecond
		b := queueBetween(t.Context(), t, srv, rfairlock.New(client, "job"), rlock.WithWait(wait))
		require.Equal(t, b.deadlines[foreignHead]+3002, b.deadlines[b.owner], "in whole milliseconds, rounded up")
		checkHeld(t, b.w.failed(t, time.Minute))
		require.Equal(t, wait, b.w.took)
		b.requireGone(t, 3002*time.Millisecond)
	})
}

func TestU26CloseRemovesWaiterFromQueue(t *testing.T) {
	for name, end := range map[string]func(*redlatch.Client) error{
		"close":    (*redlatch.Client).Close,
		"shutdown": func(c *redlatch.Client) error { return c.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client, _ := inBubble(t, noPoll())
				b := queueBetween(t.Context(), t, srv, rfairlock.New(client, "job"), rlock.WithWait(forever))
				began := time.Now()
				require.NoError(t, end(client))
				require.Less(t, time.Since(began), promptly)
				require.NotContains(t, queueOf(t, srv, "job"), b.owner, "Close waits until it has left")
				require.ErrorIs(t, b.w.failed(t, promptly), redlatch.ErrClosed)
				b.requireGone(t, forever)
			})
		})
	}
}

func TestU26WaiterOverLimitLeavesQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t, noPoll(), redlatch.WithMaxWaiters(1))
		l := rfairlock.New(client, "job")
		ctx, cancel := context.WithCancel(t.Context())
		b := queueBetween(ctx, t, srv, l)
		_, err := l.Lock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.ErrorContains(t, err, "WithMaxWaiters")
		until(t, gone, "the queue entry is removed", func() bool { return len(queueOf(t, srv, l.Name())) == 3 })
		require.Equal(t, b.deadlines, deadlinesOf(t, srv, l.Name()))
		cancel()
		require.ErrorIs(t, b.w.failed(t, promptly), context.Canceled)
		b.requireGone(t, fairWait)
	})
}

// The key changes to another type.
func TestU26FailedWaiterLeavesQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t, noPoll())
		b := queueBetween(t.Context(), t, srv, rfairlock.New(client, "job"))
		srv.Do(t, "SET", "job", "something else")
		srv.Do(t, "PUBLISH", protocol.OwnerChannel("job", b.owner), protocol.MessageUnlock)
		require.ErrorIs(t, b.w.failed(t, promptly), redlatch.ErrWrongType)
		b.requireGoneBut(t, fairWait)
		require.Equal(t, []string{foreignHead, foreignTail}, queueOf(t, srv, "job"))
	})
}

func TestForeignHashIsNotQueuedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t, noPoll())
		l := rfairlock.New(client, "job")
		srv.Do(t, "HSET", "job", "name", "bob", "year", 4)
		for _, lock := range []func(context.Context, ...rlock.Option) (*rlock.Hold, error){l.Lock, l.TryLock} {
			ctx, cancel := context.WithTimeout(t.Context(), gone)
			_, err := lock(ctx)
			cancel()
			require.ErrorIs(t, err, redlatch.ErrWrongType)
			require.ErrorContains(t, err, `a hash with the field "name", which is not an owner`)
		}
		time.Sleep(gone)
		requireNoneQueued(t, srv, "job")
	})
}

func TestU26WaiterDeniedSubscribeLeavesQueue(t *testing.T) {
	t.Parallel()
	srv, url := leastPrivileged(t, "-subscribe")
	l := rfairlock.New(connect(t, url), aclNames(t)[0])
	holdByHand(t, srv, l.Name(), forever)
	queueByHand(t, srv, l.Name(), foreignHead, time.Now().Add(forever))
	before := deadlinesOf(t, srv, l.Name())
	_, err := l.Lock(t.Context())
	require.True(t, transport.IsCode(err, "NOPERM"), err)
	until(t, soon, "the queue entry is removed", func() bool { return len(queueOf(t, srv, l.Name())) == 1 })
	require.Equal(t, before, deadlinesOf(t, srv, l.Name()))
}

// The script fails after ZADD, at RPUSH.
func TestU26AcquireDeniedMidScriptLeavesQueue(t *testing.T) {
	t.Parallel()
	srv, url := leastPrivileged(t, "-rpush")
	l := rfairlock.New(connect(t, url), aclNames(t)[0])
	holdByHand(t, srv, l.Name(), forever)
	_, err := l.Lock(t.Context())
	require.Error(t, err)
	require.ErrorContains(t, err, "can't run this command")
	require.Equal(t, int64(1), srv.CommandStats(t)["zadd"])
	until(t, soon, "no deadline is left", func() bool { return len(deadlinesOf(t, srv, l.Name())) == 0 })
}

func TestTryLockNeverQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		l := rfairlock.New(client, "job")
		holdByHand(t, srv, "job", forever)
		for range 20 {
			_, err := l.TryLock(t.Context())
			checkHeld(t, err)
			_, err = l.Lock(t.Context(), rlock.WithWait(0))
			checkHeld(t, err)
		}
		require.Empty(t, queueOf(t, srv, "job"))
		require.Empty(t, deadlinesOf(t, srv, "job"))
		queueByHand(t, srv, "job", foreignHead, time.Now().Add(forever))
		srv.Do(t, "DEL", "job")
		_, err := l.TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired, "another caller waits")
		srv.Do(t, "DEL", codec.QueueKey("job"), codec.TimeoutKey("job"))
		require.NoError(t, take(t, l).Unlock())
	})
}

// The reply to a queued caller has the deadline of the waiter before it, which is not the lease.
func TestWaiterErrorReportsHolderLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t, noPoll())
		calls.subscribe = neverSubscribes(func() {}) // so it makes only one attempt
		holdByHand(t, srv, "job", forever)
		queueByHand(t, srv, "job", foreignHead, time.Now().Add(time.Hour))
		ctx, cancel := context.WithCancel(t.Context())
		w := await(ctx, rfairlock.New(client, "job"))
		synctest.Wait()
		cancel()
		err := w.failed(t, promptly)
		checkHeld(t, err)
		var refusal *redlatch.LockError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, foreignOwner, refusal.Holder.String())
		require.LessOrEqual(t, refusal.TTL, forever)
	})
}

// neverSubscribes makes Subscribe wait until its context ends. Then it calls outOfTime and fails.
func neverSubscribes(outOfTime func()) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		outOfTime()
		return fmt.Errorf("%w: %w", redlatch.ErrNotSent, ctx.Err())
	}
}

// Subscribing ends with a deadline, which is not the reason why the wait ends at the same moment.
func TestWaiterErrorReportsCause(t *testing.T) {
	errBoss := errors.New("the boss called")
	const wait = 3100 * time.Millisecond
	for name, canceled := range map[string]bool{"canceled": true, "timeout": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client, calls := inBubble(t)
				ctx, cancel := context.WithCancelCause(t.Context())
				over := time.Now().Add(wait + 1)
				calls.subscribe = neverSubscribes(func() {
					if canceled {
						cancel(errBoss)
					} else {
						time.Sleep(time.Until(over))
					}
				})
				holdByHand(t, srv, "job", time.Hour)
				err := await(ctx, rfairlock.New(client, "job"), rlock.WithWait(wait)).failed(t, time.Minute)
				require.ErrorIs(t, err, redlatch.ErrNotAcquired)
				require.Equal(t, canceled, errors.Is(err, errBoss))
				require.Equal(t, canceled, errors.Is(err, context.Canceled))
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				synctest.Wait()
				requireNoneQueued(t, srv, "job")
				cancel(nil)
			})
		})
	}
}

// Losing the reply costs the waiter its place.
func TestUnsubscribedWaiterSurvivesLostReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		calls.subscribe = neverSubscribes(func() {})
		var attempts atomic.Int64
		calls.intercept = func(call *transport.Call, done transport.Done) bool {
			if call.Script != luasrc.FairAcquire || attempts.Add(1) != 2 {
				return false
			}
			done(nil, fmt.Errorf("%w: cut", redlatch.ErrUncertain))
			return true
		}
		holdByHand(t, srv, "job", time.Hour)
		w := await(t.Context(), rfairlock.New(client, "job"))
		time.Sleep(time.Minute)
		w.stillWaits(t)
		require.Greater(t, attempts.Load(), int64(2))
		srv.Do(t, "DEL", "job")
		require.NoError(t, w.acquired(t, time.Minute).Unlock())
	})
}
