package pubsub

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

var errNobody = errors.New("nobody home")

func hangingDial(ctx context.Context) (redis.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestRedialPauseDoublesUpToLimit(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		l := mustSubscribe(t, s, "c")
		f.Refuse(errNobody)
		f.Cut()
		time.Sleep(20 * time.Second)
		f.Refuse(nil)
		require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, l))
		dials := f.Dials()[1:]
		for i := 1; i < len(dials); i++ {
			longest := min(20*time.Millisecond<<i, time.Second)
			pause := dials[i].Sub(dials[i-1])
			require.LessOrEqual(t, pause, longest, "pause %d", i)
			require.GreaterOrEqual(t, pause, longest/2, "pause %d", i)
		}
		require.Greater(t, len(dials), 20)
	})
}

func TestGoodConnectionResetsPause(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		l := mustSubscribe(t, s, "c")
		for range 20 {
			start := time.Now()
			f.Cut()
			require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, l))
			require.LessOrEqual(t, time.Since(start), 20*time.Millisecond)
		}
	})
}

func TestReconnectReplacesConnectionAndReportsGap(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		s.Reconnect() // there is none yet
		synctest.Wait()
		require.Empty(t, f.Dials())
		l := mustSubscribe(t, s, "c")
		for i := range 3 {
			s.Reconnect()
			require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, l))
			require.Len(t, f.Dials(), i+2)
		}
		l.Close()
		synctest.Wait()
		require.NoError(t, s.Close())
		s.Reconnect()
	})
}

func TestNoDialWithoutSubscriptions(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		time.Sleep(time.Hour)
		require.Empty(t, f.Dials())
		mustSubscribe(t, s, "c").Close()
		synctest.Wait()
		require.Zero(t, s.Stats().Channels)
		f.Cut()
		time.Sleep(time.Hour)
		require.Len(t, f.Dials(), 1)
		mustSubscribe(t, s, "c").Close()
		require.Len(t, f.Dials(), 2)
	})
}

func TestFailedDialFailsPendingKeepsEstablished(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		l := mustSubscribe(t, s, "c")
		f.Refuse(errNobody)
		f.Cut()
		synctest.Wait()
		for _, name := range []string{"c", "d"} {
			_, err := s.Subscribe(t.Context(), name)
			require.ErrorIs(t, err, transport.ErrNotSent)
			require.ErrorContains(t, err, "nobody home")
		}
		require.Equal(t, Stats{Channels: 1, Listeners: 1, Dials: 1}, s.Stats())
		f.Refuse(nil)
		require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, l))
	})
}

func TestDialKeepsServerError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, logger := redistest.NewJournal()
		s := New(Config{Logger: logger, Dial: func(context.Context) (redis.Conn, error) {
			return nil, redis.Error("WRONGPASS go away")
		}})
		for range 3 {
			_, err := s.Subscribe(t.Context(), "c")
			require.ErrorIs(t, err, transport.ErrNotSent)
			require.True(t, transport.IsCode(err, "WRONGPASS"))
		}
		require.Len(t, log.Lines(`level=WARN msg="redlatch: pub/sub connection failed"`), 1)
		mustClose(t, s)
	})
}

func TestSubscribeOnFullServerIsNotSent(t *testing.T) {
	full := func(string) string { return "ERR max number of clients reached" }
	onServer(t, &fakeServer{refuse: full}, func(f *fakeServer, s *Subscriber) {
		_, err := s.Subscribe(f.t.Context(), "c")
		require.ErrorIs(f.t, err, transport.ErrNotSent)
		require.True(f.t, transport.IsCode(err, "ERR"))
	})
}

func TestDialTimeoutBoundsDial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Dial: hangingDial, DialTimeout: 3 * time.Second})
		start := time.Now()
		_, err := s.Subscribe(t.Context(), "c")
		require.ErrorIs(t, err, transport.ErrNotSent)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(start))
		mustClose(t, s)
	})
}

func TestThreeSilentConnectionsFailPendingSubscriptions(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		f.mute.Store(true)
		start := time.Now()
		_, err := s.Subscribe(context.Background(), "c")
		require.ErrorIs(t, err, transport.ErrNotSent)
		require.ErrorIs(t, err, errDead)
		require.Len(t, f.Dials(), 3)
		require.Less(t, time.Since(start), 3*deadAfter+time.Second)
		require.Zero(t, s.Stats().Channels)
	})
}

func TestPendingSubscribeSurvivesBrokenConnection(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		f.mute.Store(true)
		done := subscribeLater(s, "c")
		synctest.Wait()
		f.mute.Store(false)
		f.Cut()
		require.NoError(t, <-done)
		require.Len(t, f.Dials(), 2)
	})
}

func TestContextEndsPendingSubscribe(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		f.mute.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Subscribe(ctx, "c")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = s.Subscribe(ctx, "d")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		f.mute.Store(false)
		f.Cut()
		synctest.Wait()
		require.Zero(t, s.Stats().Channels)
		require.NotContains(t, strings.Join(f.Commands(), "\n"), "SUBSCRIBE d")
	})
}
