package rfairlock_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

func TestU26LostFirstReplyLeavesNoQueueEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t, noPoll())
		end := calls.holdReply(luasrc.FairAcquire)
		b := unsubscribedBetween(t.Context(), t, srv, rfairlock.New(client, "job"), rlock.WithWait(forever))
		end(redlatch.ErrUncertain)
		require.ErrorIs(t, b.w.failed(t, promptly), redlatch.ErrUncertain)
		b.requireGone(t, forever)
	})
}

// The waiter queues again with a new owner.
func TestU26LostLaterReplyLeavesNoQueueEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t, noPoll())
		ctx, cancel := context.WithCancel(t.Context())
		b := queueBetween(ctx, t, srv, rfairlock.New(client, "job"), rlock.WithWait(forever))
		end := calls.holdReply(luasrc.FairAcquire)
		srv.Do(t, "PUBLISH", protocol.OwnerChannel("job", b.owner), protocol.MessageUnlock)
		synctest.Wait()
		end(redlatch.ErrUncertain)
		b.requireGoneBut(t, forever)
		queue := awaitAsleep(t, srv, "job", 3)
		require.Equal(t, []string{foreignHead, foreignTail}, queue[:2])
		b.w.stillWaits(t)
		cancel()
		require.ErrorIs(t, b.w.failed(t, promptly), context.Canceled)
		b.owner, b.deadlines = queue[2], deadlinesOf(t, srv, "job")
		b.requireGone(t, 0) // there was no waiter behind it
	})
}

func TestU26LateAcquireLeavesNoQueueEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		l := rfairlock.New(client, "job")
		_, err := l.Lock(t.Context(), rlock.WithWait(time.Second)) // an unknown script never runs for a caller that has left
		checkHeld(t, err)
		var arrives func()
		calls.onNext(luasrc.FairAcquire, func(call *transport.Call, done transport.Done) {
			sent := faketransport.InFlight(call)
			arrives = func() { calls.Redigo.Start(sent, done) }
		})
		w, cancel := waitTogether(t, l, 1)
		cancel()
		require.ErrorIs(t, w[0].err, context.Canceled)
		require.ErrorIs(t, w[0].err, redlatch.ErrUncertain)
		time.Sleep(time.Second)
		arrives()
		time.Sleep(gone)
		requireNoneQueued(t, srv, "job")
	})
}

// The acquire arrives long after its connection was closed.
func TestU26UncertainAcquireLeavesNoQueueEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		var late transport.Call
		calls.onNext(luasrc.FairAcquire, func(call *transport.Call, done transport.Done) {
			late.Script, late.NumKeys, late.Args = call.Script, call.NumKeys, slices.Clone(call.Args)
			done(nil, redlatch.ErrUncertain)
		})
		require.ErrorIs(t, await(t.Context(), rfairlock.New(client, "job")).failed(t, promptly), redlatch.ErrUncertain)
		time.Sleep(10 * time.Second)
		calls.Redigo.Start(&late, func(any, error) {})
		synctest.Wait()
		require.Len(t, queueOf(t, srv, "job"), 1)
		time.Sleep(time.Minute)
		requireNoneQueued(t, srv, "job")
		require.Equal(t, map[string]string{foreignOwner: "1"}, owners(t, srv, "job"))
	})
}

func TestU26LateGrantPassesToNextWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t, noPoll())
		other, _ := fakeClient(t, srv, noPoll())
		holdByHand(t, srv, "job", time.Hour)
		leaver, cancel := waitTogether(t, rfairlock.New(client, "job"), 1)
		stayer, _ := waitTogether(t, rfairlock.New(other, "job"), 1)
		end := calls.holdReply(luasrc.FairAcquire)
		freeByHand(t, srv, "job")
		synctest.Wait()
		cancel()
		require.ErrorIs(t, leaver[0].err, context.Canceled)
		stayer[0].stillWaits(t)
		end(nil)
		require.NoError(t, stayer[0].acquired(t, time.Second).Unlock())
		requireNoTrace(t, srv, "job")
	})
}

// The server is paused for longer than any command may take.
func TestU26WaitersLeaveQueueOfFrozenServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		l := rfairlock.New(client, "job")
		holdByHand(t, srv, "job", time.Hour)
		_, leave := waitTogether(t, l, 5)
		timed, _ := waitTogether(t, l, 2, rlock.WithWait(2*time.Second))
		resume := calls.stall()
		_, leaveLate := waitTogether(t, l, 5)
		leave()
		leaveLate()
		for _, w := range timed {
			checkHeld(t, w.failed(t, time.Minute))
		}
		time.Sleep(10 * time.Second)
		resume()
		time.Sleep(gone)
		requireNoneQueued(t, srv, "job")
	})
}

func TestU26LostLeaveIsResent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t, noPoll())
		ctx, cancel := context.WithCancel(t.Context())
		b := queueBetween(ctx, t, srv, rfairlock.New(client, "job"))
		calls.onNext(luasrc.FairGiveUp, func(_ *transport.Call, done transport.Done) { done(nil, redlatch.ErrUncertain) })
		cancel()
		require.ErrorIs(t, b.w.failed(t, promptly), context.Canceled)
		b.requireGone(t, fairWait)
	})
}
