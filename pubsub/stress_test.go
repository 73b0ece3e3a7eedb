package pubsub

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

// TestChurnUnderKilledConnectionsLosesNoWakeUp: whatever is published after a
// Subscribe has returned leads to an event.
func TestChurnUnderKilledConnectionsLosesNoWakeUp(t *testing.T) {
	t.Parallel()
	const goroutines, channels = 40, 20
	rounds := testlevel.Rounds(40, 100)
	server := redistest.Start(t)
	s := subscriberTo(t, configFor(server.Addr()))
	pool := &redis.Pool{MaxActive: 8, Wait: true, Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", server.Addr())
	}}
	defer func() { assert.NoError(t, pool.Close()) }()

	stop := make(chan struct{})
	var killer, churners sync.WaitGroup
	kills := 0
	killer.Go(func() { kills = killPeriodically(t, s, server, stop) })
	for g := range goroutines {
		churners.Go(func() {
			for range rounds {
				if !assert.NoError(t, churn(s, pool, fmt.Sprint("channel:", g%channels))) {
					return
				}
			}
		})
	}
	churners.Wait()
	close(stop)
	killer.Wait()
	require.Positive(t, kills)
	// The last kill may have hit a connection that is not needed any more.
	mustSubscribe(t, s, "final").Close()
	requireIdle(t, server, s)
}

// killPeriodically ends connections that have answered: after three in a row that did
// not, Subscribe may tell so, and on a machine that is slow enough they would not.
func killPeriodically(t testing.TB, s *Subscriber, server *redistest.Server, stop <-chan struct{}) (kills int) {
	t.Helper()
	tick := time.NewTicker(40 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if !assert.NoError(t, answered(s, fmt.Sprint("killer:", kills))) {
				return kills
			}
			kills += server.KillClients(t, "pubsub")
		case <-stop:
			return kills
		}
	}
}

// answered returns when the present connection has answered for a channel of its own.
func answered(s *Subscriber, channel string) error {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	l, err := s.Subscribe(ctx, channel)
	if err != nil {
		return err
	}
	l.Close()
	return nil
}

func churn(s *Subscriber, pool *redis.Pool, channel string) error {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	l, err := s.Subscribe(ctx, channel)
	if err != nil {
		return err
	}
	defer l.Close()
	c := pool.Get()
	_, err = c.Do("PUBLISH", channel, "0")
	if err = errors.Join(err, c.Close()); err != nil {
		return err
	}
	select {
	case _, open := <-l.Events():
		if !open {
			return l.Err()
		}
		return nil
	case <-ctx.Done():
		return errors.New("lost wake-up")
	}
}

func TestRapidSubscribingAndUnsubscribingEndsInTheRightState(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := subscriberTo(t, configFor(server.Addr()))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(300))*time.Microsecond)
				if l, err := s.Subscribe(ctx, "c"); err == nil {
					l.Close()
				} else {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	l := mustSubscribe(t, s, "c")
	server.Do(t, "PUBLISH", "c", "0")
	require.Equal(t, transport.Event{Payload: "0"}, awaitEvent(t, l))
	l.Close()
	requireIdle(t, server, s)
	require.EqualValues(t, 1, s.Stats().Dials)
}

func TestSubscribeWithAnEndedContextLeavesNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := subscriberTo(t, configFor(server.Addr()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Subscribe(ctx, "c")
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, s.Stats())
	require.Zero(t, server.Clients(t))
}

func TestCloseEndsAThousandPendingAndAThousandEstablished(t *testing.T) {
	t.Parallel()
	onFakeTime(t, func(f *fakeServer, s *Subscriber) {
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
}

func TestNewWithoutADialPanics(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { New(Config{}) })
}
