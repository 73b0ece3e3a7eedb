package compat

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// testFairLate: a Java waiter whose replies are lost after it was queued, for so long that
// releases that send the call again have sent it for the last time. Those that still wait
// then are alive, and keep their places. The others have thrown an exception: their places
// are those of the dead.
func (c *compat) testFairLate(t *testing.T) {
	t.Parallel()
	const lost = 16 * time.Second
	server, name := redistest.Start(t), redistest.Key(t)
	hold := must(rfairlock.New(open(t, server), name).Lock(t.Context(), rlock.WithLease(time.Hour)))(t)
	proxy := redistest.NewProxy(t, server.Addr())
	java := connectTo(t, c.peer, proxy.URL(), nil)
	free := fair(peer.Command{"name": redistest.Key(t), "thread": "late"})
	java.do(t, free.With(peer.Command{"op": "lock"})) // so that the server knows the script
	java.do(t, free.With(peer.Command{"op": "unlock"}))
	proxy.Blackhole(redistest.ToClient)
	queued := time.Now()
	call := java.begin(fair(peer.Command{"op": "lock", "name": name, "thread": "late"}))
	require.Eventually(t, func() bool { return len(queueOf(t, server, name)) == 1 }, atMost, time.Millisecond)
	first := queueOf(t, server, name)[0]

	var seen evictions
	ours, taken := open(t, server, redlatch.WithObserver(seen.observer())), make(chan error, 1)
	go func() {
		hold, err := rfairlock.New(ours, name).Lock(t.Context())
		if err == nil {
			err = hold.Unlock()
		}
		taken <- err
	}()
	awaitQueued(t, server, name, 2)
	<-time.After(lost - time.Since(queued))
	proxy.Heal(redistest.ToClient)

	if _, err := call.Wait(10 * time.Second); errors.Is(err, peer.ErrTimeout) {
		t.Logf("Redisson %s waits on after %v without replies", c.release, lost)
		require.Equal(t, int64(1), listenersOf(t, server, name, first))
		<-time.After(deadBound - time.Since(queued))
		require.Equal(t, first, queueOf(t, server, name)[0])
		require.Zero(t, seen.of(name), "a living waiter was evicted")
		require.NoError(t, hold.Unlock())
		must(call.Wait(atMost))(t)
		java.do(t, fair(peer.Command{"op": "unlock", "name": name, "thread": "late"}))
	} else {
		require.Error(t, err)
		require.NoError(t, hold.Unlock())
		require.Eventually(t, func() bool { return seen.of(name) == 1 }, deadBound-time.Since(queued)+time.Second, time.Millisecond)
	}
	require.NoError(t, <-taken)
}
