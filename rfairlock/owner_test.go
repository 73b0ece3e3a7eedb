package rfairlock_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// A reentry does not wait, so it must not queue when the lock is lost.
func TestReentryOfASharedOwnerNeverQueues(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	l := rfairlock.New(connect(t, srv.URL()), redistest.Key(t))
	hold := take(t, l, rlock.WithOwner(redlatch.NewOwner(uuid.New(), 57)))
	inner, err := l.Lock(hold.Context(t.Context()))
	require.NoError(t, err)
	require.Equal(t, map[string]string{hold.Owner().String(): "2"}, owners(t, srv, l.Name()))
	require.NoError(t, inner.Unlock())
	ctx, cancel := context.WithTimeout(hold.Context(t.Context()), soon)
	defer cancel()
	holdByHand(t, srv, l.Name(), forever)
	_, err = l.Lock(ctx)
	require.ErrorIs(t, err, redlatch.ErrLost)
	require.Empty(t, queueOf(t, srv, l.Name()))
	require.Empty(t, deadlinesOf(t, srv, l.Name()))
}

// The shared place leaves with the first. The other queues again immediately, although it does not
// poll.
func TestUserOfAnOwnerOutlivesTheOtherOneInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		l, owner := rfairlock.New(client, "job"), redlatch.NewOwner(uuid.New(), 57)
		first := await(t.Context(), l)
		synctest.Wait()
		stayer := await(t.Context(), l, rlock.WithOwner(owner))
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		leaver := await(ctx, l, rlock.WithOwner(owner))
		synctest.Wait()
		require.Len(t, queueOf(t, srv, "job"), 2)
		cancel()
		<-leaver.done
		synctest.Wait()
		queue := queueOf(t, srv, "job")
		require.Len(t, queue, 2)
		require.Equal(t, owner.String(), queue[1])
		freeByHand(t, srv, "job")
		require.NoError(t, first.acquired(t, time.Second).Unlock())
		require.NoError(t, stayer.acquired(t, time.Second).Unlock())
	})
}

// Users of one owner do not exclude each other.
func TestBothUsersOfAnOwnerGetInWhenItsTurnHasCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		l, owner := rfairlock.New(client, "job"), redlatch.NewOwner(uuid.New(), 57)
		one := await(t.Context(), l, rlock.WithOwner(owner))
		synctest.Wait()
		last := await(t.Context(), l)
		synctest.Wait()
		other := await(t.Context(), l, rlock.WithOwner(owner))
		synctest.Wait()
		freed := time.Now()
		freeByHand(t, srv, "job")
		holds := []*rlock.Hold{one.acquired(t, time.Hour), other.acquired(t, time.Hour)}
		require.Zero(t, time.Since(freed))
		require.Equal(t, map[string]string{owner.String(): "2"}, owners(t, srv, "job"))
		last.stillWaits(t)
		for _, h := range holds {
			require.NoError(t, h.Unlock())
		}
		require.NoError(t, last.acquired(t, time.Second).Unlock())
	})
}

func TestLongestWaitOfAllIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		w := await(ctx, rfairlock.New(client, "job"), rlock.WithWait(math.MaxInt64))
		synctest.Wait()
		due := deadlinesOf(t, srv, "job")[queueOf(t, srv, "job")[0]]
		require.Greater(t, due, time.Now().Add(100*365*24*time.Hour).UnixMilli())
		cancel()
		require.ErrorIs(t, w.failed(t, time.Second), context.Canceled)
	})
}
