package rlock_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// connectionFaults break connections while waiters wait. Each frees the lock, in
// the middle of it, where the server does not do so itself.
var connectionFaults = []struct {
	name  string
	fault func(t *testing.T, s *redistest.Server, p *redistest.Proxy, free func())
}{
	{"subscription connections killed", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy, free func()) {
		t.Helper()
		require.Positive(t, s.KillClients(t, "pubsub"))
		free()
		s.KillClients(t, "pubsub")
	}},
	{"command connections killed", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy, free func()) {
		t.Helper()
		require.Positive(t, s.KillClients(t, "normal"))
		free()
		s.KillClients(t, "normal")
	}},
	{"all connections killed", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy, free func()) {
		t.Helper()
		s.KillClients(t, "pubsub")
		free()
		s.KillClients(t, "normal")
		s.KillClients(t, "pubsub")
	}},
	{"reset by the network", func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy, free func()) {
		p.Refuse(true)
		p.Reset()
		free()
		p.Refuse(false)
	}},
	{"server restarted, empty", func(_ *testing.T, s *redistest.Server, _ *redistest.Proxy, _ func()) {
		s.Restart()
	}},
	{"server paused", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy, free func()) {
		t.Helper()
		free()
		s.Do(t, "CLIENT", "PAUSE", 1000, "ALL")
	}},
	{"server frozen for longer than commands may take", func(_ *testing.T, s *redistest.Server, _ *redistest.Proxy, free func()) {
		free()
		s.Pause()
		<-time.After(2500 * time.Millisecond)
		s.Resume()
	}},
}

func TestU16EveryWaiterGetsInAfterItsConnectionsBroke(t *testing.T) {
	t.Parallel()
	const clients, waitersEach = 2, 10
	for _, f := range connectionFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := redistest.NewProxy(t, s.Addr())
			key := redistest.Key(t)
			holdByHand(t, s, key, forever)
			var inside atomic.Int32
			var waiters []*waiter
			for range clients {
				client := connect(t, p.URL(), noPoll(), redlatch.WithCommandTimeout(time.Second))
				for range waitersEach {
					waiters = append(waiters, inBackground(func() (*rlock.Hold, error) {
						hold, err := rlock.New(client, key).Lock(t.Context())
						if err != nil {
							return nil, err
						}
						if inside.Add(1) != 1 {
							t.Error("two are inside")
						}
						inside.Add(-1)
						err = hold.Unlock()
						if errors.Is(err, redlatch.ErrUncertain) {
							err = nil // the fault outlasted it; the lock is freed all the same
						}
						return hold, err
					}))
				}
			}
			awaitListeners(t, s, key, clients)
			f.fault(t, s, p, func() { freeByHand(t, s, key) })
			for _, w := range waiters {
				w.acquired(t, soon)
			}
			until(t, time.Second+slack, "the lock is free", func() bool { return !locked(t, s, key) })
		})
	}
}

// A call in flight on a connection that breaks ends at once, and says what it
// cannot know: here it ran, and there it did not.
func TestCallInFlightOnABrokenConnectionIsUncertain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, client := through(t, s)
	key := redistest.Key(t)
	try := func() (*rlock.Hold, error) { return rlock.New(client, key).TryLock(t.Context()) }

	before := grants(t, s)
	p.CutReplyAfter(1)
	require.ErrorIs(t, inBackground(try).failed(t, atOnce), redlatch.ErrUncertain)
	require.Equal(t, before+1, grants(t, s))
	until(t, time.Second+slack, "the lock is free", func() bool { return !locked(t, s, key) })

	held := p.HoldMatching(redistest.ToServer, key)
	w := inBackground(try)
	awaitClosed(t, held.Seen(), soon, "the acquire")
	s.KillClients(t, "normal")
	require.ErrorIs(t, w.failed(t, atOnce), redlatch.ErrUncertain)
	require.NoError(t, take(t, rlock.New(client, key)).Unlock())
	require.Equal(t, before+2, grants(t, s))
}

func TestHoldOutlivesBothItsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, time.Millisecond)
		hold := take(t, rlock.New(client, "job"))
		holdByHand(t, w.srv, "other", time.Hour) // its waiter has the connection for subscriptions
		waiter := await(t.Context(), rlock.New(client, "other"))
		for range 3 {
			time.Sleep(25 * time.Second)
			w.reset()
		}
		time.Sleep(time.Minute)
		require.NoError(t, hold.Unlock())
		waiter.stillWaits(t)
		freed := time.Now()
		freeByHand(t, w.srv, "other")
		require.NoError(t, waiter.acquired(t, soon).Unlock())
		require.Less(t, time.Since(freed), time.Second)
	})
}
