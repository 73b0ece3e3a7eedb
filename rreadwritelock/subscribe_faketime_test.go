package rreadwritelock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/transport"
)

// A mutePubSub transport runs calls, but does not confirm subscriptions.
type mutePubSub struct{ transport.Transport }

func (mutePubSub) Subscribe(ctx context.Context, _ string) (transport.Subscription, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// unconfirmed returns a lock whose waiting callers are always subscribing. The server knows the scripts, so that no
// release is sent twice.
func unconfirmed(t *testing.T) *rreadwritelock.Lock {
	t.Helper()
	s, rw := inMemory(t)
	mute := func(near transport.Transport) transport.Transport { return mutePubSub{near} }
	unlock(t, take(t, rw.Read()))
	unlock(t, take(t, rw.Write()))
	return rreadwritelock.New(callers.Over(t, s, mute), rw.Name())
}

func TestSubscribingReaderDoesNotDelayNextWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rw := unconfirmed(t)
		w := take(t, rw.Write())
		reader, writer := queued(t.Context(), rw.Read()), queued(t.Context(), rw.Write())
		time.Sleep(100 * time.Millisecond)
		unlocked := time.Now()
		unlock(t, w)
		r := must(t, reader, soon)
		synctest.Wait() // until the writer has been refused
		unlock(t, r)
		unlock(t, must(t, writer, soon))
		require.Zero(t, time.Since(unlocked))
	})
}

func TestSubscribingReaderEntersWithOtherReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rw := unconfirmed(t)
		w := take(t, rw.Write())
		leader, follower := queued(t.Context(), rw.Read()), queued(t.Context(), rw.Read())
		time.Sleep(100 * time.Millisecond)
		unlocked := time.Now()
		unlock(t, w)
		unlock(t, must(t, follower, soon), must(t, leader, soon))
		require.Zero(t, time.Since(unlocked))
	})
}

func TestSubscribingWriterEntersAfterLastReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rw := unconfirmed(t)
		r := take(t, rw.Read())
		writer := queued(t.Context(), rw.Write())
		time.Sleep(100 * time.Millisecond)
		unlocked := time.Now()
		unlock(t, r)
		unlock(t, must(t, writer, soon))
		require.Zero(t, time.Since(unlocked))
	})
}
