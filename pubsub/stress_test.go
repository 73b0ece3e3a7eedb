package pubsub

import (
	"context"
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
	"github.com/redlatch/redlatch/transport"
)

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
