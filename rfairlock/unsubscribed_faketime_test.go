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
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// slowSubscriber is a transport that subscribes to nothing before the caller loses its
// patience. Then it calls outOfTime.
type slowSubscriber struct {
	*counting
	outOfTime func()
}

func (u *slowSubscriber) Subscribe(ctx context.Context, _ string) (transport.Subscription, error) {
	<-ctx.Done()
	u.outOfTime()
	return nil, fmt.Errorf("%w: %w", redlatch.ErrNotSent, ctx.Err())
}

// A waiter in the queue tries to listen for a while only. What ended that is not
// what ended its wait.
func TestErrorOfAWaiterNamesTheEndOfItsContextAndNoOther(t *testing.T) {
	errBoss := errors.New("the boss called")
	synctest.Test(t, func(t *testing.T) {
		srv, _, calls := inBubble(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		client, err := redlatch.NewWithTransport(&slowSubscriber{calls, func() { cancel(errBoss) }})
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		holdByHand(t, srv, "job", time.Hour)
		err = await(ctx, rfairlock.New(client, "job")).failed(t, time.Minute)
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.ErrorIs(t, err, errBoss)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		require.Empty(t, queueOf(t, srv, "job"))
	})
}

// The same, when the time to wait is over in the moment in which the attempt to
// listen is.
func TestErrorOfAWaiterWhoseTimeIsOverAsItFailsToSubscribeNamesNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _, calls := inBubble(t)
		const wait = 3100 * time.Millisecond
		began := time.Now()
		client, err := redlatch.NewWithTransport(&slowSubscriber{calls, func() { time.Sleep(time.Until(began.Add(wait + 1))) }})
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		holdByHand(t, srv, "job", time.Hour)
		err = await(t.Context(), rfairlock.New(client, "job"), rlock.WithWait(wait)).failed(t, time.Minute)
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		require.Empty(t, queueOf(t, srv, "job"))
	})
}

// losingSubscriber is one that also loses the reply to an attempt.
type losingSubscriber struct {
	slowSubscriber
	attempts atomic.Int64
}

func (f *losingSubscriber) Start(call *transport.Call, done transport.Done) {
	if call.Script == luasrc.FairAcquire && f.attempts.Add(1) == 2 {
		done(nil, fmt.Errorf("%w: cut", redlatch.ErrUncertain))
		return
	}
	f.slowSubscriber.Start(call, done)
}

// It has no place any more, and no subscription either.
func TestWaiterThatCannotSubscribeAndLosesAReplyGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _, calls := inBubble(t)
		tr := &losingSubscriber{slowSubscriber: slowSubscriber{calls, func() {}}}
		client, err := redlatch.NewWithTransport(tr)
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		holdByHand(t, srv, "job", time.Hour)
		w := await(t.Context(), rfairlock.New(client, "job"))
		time.Sleep(time.Minute)
		w.stillWaits(t)
		require.Greater(t, tr.attempts.Load(), int64(2))
		srv.Do(t, "DEL", "job")
		require.NoError(t, w.acquired(t, time.Minute).Unlock())
	})
}
