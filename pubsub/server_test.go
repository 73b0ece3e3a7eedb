package pubsub

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

func configFor(addr string, opts ...redis.DialOption) Config {
	opts = append(opts, redis.DialWriteTimeout(5*time.Second))
	return Config{Dial: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", addr, opts...)
	}}
}

// subscriberTo returns a Subscriber that is closed with the test.
func subscriberTo(t testing.TB, cfg Config) *Subscriber {
	t.Helper()
	s := New(cfg)
	t.Cleanup(func() { mustClose(t, s) })
	return s
}

// subscribeAll subscribes to n channels concurrently.
func subscribeAll(t testing.TB, s *Subscriber, n int, name func(i int) string) []transport.Subscription {
	t.Helper()
	all := make([]transport.Subscription, n)
	errs := make([]error, n)
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { all[i], errs[i] = s.Subscribe(ctx, name(i)) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	return all
}

// requireIdle waits until server and Subscriber have no channels.
func requireIdle(t testing.TB, server *redistest.Server, s *Subscriber) {
	t.Helper()
	assert.Eventually(t, func() bool { return s.Stats().Channels == 0 }, waitLimit, 5*time.Millisecond)
	require.Empty(t, server.Channels(t))
	require.Zero(t, s.Stats().Listeners)
	require.True(t, s.Stats().Connected)
}

func TestU19OneWaitersTimeoutDoesNotSilenceTheOthers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := subscriberTo(t, configFor(server.Addr()))
	leaver, stayer := mustSubscribe(t, s, "c"), mustSubscribe(t, s, "c")
	marker := mustSubscribe(t, s, "marker")
	leaver.Close()
	marker.Close() // unsubscribed after anything the leaver may have caused
	assert.Eventually(t, func() bool { return s.Stats().Channels == 1 }, waitLimit, time.Millisecond)
	for i := range 3 {
		server.Do(t, "PUBLISH", "c", i)
		require.Equal(t, transport.Event{Payload: fmt.Sprint(i)}, awaitEvent(t, stayer))
	}
	requireNoEvent(t, leaver)
	require.NoError(t, leaver.Err())
	require.EqualValues(t, 2, server.CommandStats(t)["subscribe"], "the two share one")
	stayer.Close()
	requireIdle(t, server, s)
}

func TestU27AStuckListenerCostsNoOtherSubscriptionAWakeUp(t *testing.T) {
	t.Parallel()
	const messages = 10_000
	server := redistest.Start(t)
	s := subscriberTo(t, configFor(server.Addr()))
	stuck := mustSubscribe(t, s, "c")
	sharer, neighbour := mustSubscribe(t, s, "c"), mustSubscribe(t, s, "d")

	var published atomic.Int64 // what a listener looks at when it is woken
	var wg sync.WaitGroup
	for _, l := range []transport.Subscription{sharer, neighbour} {
		wg.Go(func() {
			for deadline := time.After(waitLimit); published.Load() < messages; {
				select {
				case <-l.Events():
				case <-deadline:
					assert.Fail(t, "a wake-up was missed")
					return
				}
			}
		})
	}
	c := server.Dial(t)
	for i := 0; i < messages; i += 100 {
		for range 100 {
			require.NoError(t, c.Send("PUBLISH", "c", "0"))
			require.NoError(t, c.Send("PUBLISH", "d", "0"))
		}
		published.Add(100)
		_, err := c.Do("")
		require.NoError(t, err)
	}
	// Later messages must not be missed.
	server.Do(t, "PUBLISH", "c", "last")
	server.Do(t, "PUBLISH", "d", "last")
	wg.Wait()
	// Only now: while "last" is merged into the event, the slot is empty.
	require.Equal(t, "0", awaitEvent(t, stuck).Payload)
	require.EqualValues(t, 1, s.Stats().Dials, "the connection kept up")
}

func TestAnEventCountsTheEventsMergedIntoIt(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := subscriberTo(t, configFor(server.Addr()))
	both := subscribeAll(t, s, 2, func(i int) string { return []string{"counted", "after"}[i] })
	counted, after := both[0], both[1]
	c := server.Dial(t)
	for _, n := range []int{1, 2, 1000} {
		for i := range n {
			require.NoError(t, c.Send("PUBLISH", "counted", i))
		}
		_, err := c.Do("PUBLISH", "after", "")
		require.NoError(t, err)
		awaitEvent(t, after) // then all others have come
		require.Equal(t, transport.Event{Payload: "0", Coalesced: n - 1}, awaitEvent(t, counted))
	}
}

func TestU16KilledPubSubConnectionsAreMadeAnewAndTheGapIsReported(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := subscriberTo(t, configFor(server.Addr()))
	all := subscribeAll(t, s, 500, func(i int) string { return fmt.Sprint("channel:", i/2) })
	require.Equal(t, 1, server.Clients(t))
	require.Equal(t, Stats{Channels: 250, Listeners: 500, Connected: true, Dials: 1}, s.Stats())
	for round := range 3 {
		before := server.CommandStats(t)["subscribe"]
		require.Equal(t, 1, server.KillClients(t, "pubsub"))
		for _, l := range all {
			require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, l))
		}
		require.Equal(t, before+1, server.CommandStats(t)["subscribe"], "one command for all channels")
		server.Do(t, "PUBLISH", "channel:7", round)
		require.Equal(t, transport.Event{Payload: fmt.Sprint(round)}, awaitEvent(t, all[14]))
		require.Equal(t, transport.Event{Payload: fmt.Sprint(round)}, awaitEvent(t, all[15]))
	}
}

func TestCloseEndsAThousandPendingAndAThousandEstablished(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		const n = 1000
		var established []transport.Subscription
		for i := range n {
			established = append(established, mustSubscribe(t, s, fmt.Sprint("old:", i/2)))
		}
		f.mute.Store(true)
		var pending []<-chan error
		for i := range n {
			pending = append(pending, subscribeLater(s, fmt.Sprint("new:", i/2)))
		}
		synctest.Wait()
		require.Equal(t, Stats{Channels: n, Listeners: 2 * n, Pending: n, Connected: true, Dials: 1}, s.Stats())
		var closers sync.WaitGroup
		for range 3 {
			closers.Go(func() { assert.NoError(t, s.Close()) })
		}
		closers.Wait()
		for _, done := range pending {
			require.Equal(t, transport.ErrClosed, <-done)
		}
		for _, l := range established {
			require.Equal(t, transport.ErrClosed, requireFailed(t, l))
			l.Close()
		}
		_, err := s.Subscribe(t.Context(), "c")
		require.Equal(t, transport.ErrClosed, err)
	})
}

func TestCloseBeforeTheFirstUseDialsNothing(t *testing.T) {
	t.Parallel()
	s := New(Config{Dial: func(context.Context) (redis.Conn, error) { panic("dialled") }})
	mustClose(t, s)
	mustClose(t, s)
	_, err := s.Subscribe(t.Context(), "c")
	require.Equal(t, transport.ErrClosed, err)
	require.Panics(t, func() { New(Config{}) })
}
