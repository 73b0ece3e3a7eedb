package pubsub

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

const (
	pingInterval = 10 * time.Second // the default
	deadAfter    = 5 * time.Second  // the default
)

func TestSilentConnectionIsPingedEveryInterval(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		l := mustSubscribe(t, s, "c")
		for i := range 6 { // so that the connection is not silent
			time.Sleep(pingInterval - time.Second)
			f.publish("message", "c", "0")
			require.Equal(t, transport.Event{Payload: "0"}, awaitEvent(t, l))
			require.Equal(t, []string{"PING", "SUBSCRIBE c"}, f.Commands(), "message %d", i)
		}
		for i := range 6 {
			time.Sleep(pingInterval - time.Nanosecond)
			synctest.Wait()
			require.Len(t, f.Commands(), 2+i)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			require.Len(t, f.Commands(), 3+i)
		}
		require.Len(t, f.Dials(), 1)
		requireNoEvent(t, l)
	})
}

func TestFrozenServerIsDroppedAfterOnePing(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		start := time.Now()
		l := mustSubscribe(t, s, "c")
		f.mute.Store(true)
		time.Sleep(pingInterval + deadAfter - time.Nanosecond)
		synctest.Wait()
		require.Len(t, f.Dials(), 1)
		f.mute.Store(false)
		require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, l))
		require.WithinRange(t, time.Now(), start.Add(15*time.Second+10*time.Millisecond), start.Add(15*time.Second+20*time.Millisecond))
		require.Len(t, f.Dials(), 2)
	})
}

func TestServerNotReadingIsDropped(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		start := time.Now()
		l := mustSubscribe(t, s, "c")
		hear := f.StopReading()
		defer hear()
		require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, l))
		require.Less(t, time.Since(start), pingInterval+2*deadAfter+time.Second)
	})
}

func TestMessagesDoNotMaskUnansweredCommands(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		l := mustSubscribe(t, s, "c")
		f.mute.Store(true)
		start := time.Now()
		pending := subscribeLater(s, "other")
		for len(f.Dials()) == 1 {
			require.LessOrEqual(t, time.Since(start), patience*deadAfter)
			f.publish("message", "c", "0")
			time.Sleep(time.Second)
			synctest.Wait()
		}
		require.GreaterOrEqual(t, time.Since(start), patience*deadAfter)
		f.mute.Store(false)
		time.Sleep(2 * deadAfter) // the second connection may have begun mute
		require.NoError(t, <-pending)
		require.False(t, awaitEvent(t, l).Gap)
	})
}

func TestCloseDoesNotWaitForBlockedWrite(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		l := mustSubscribe(t, s, "c")
		hear := f.StopReading()
		defer hear()
		time.Sleep(pingInterval + time.Second)
		start := time.Now()
		mustClose(t, s)
		require.Less(t, time.Since(start), time.Second)
		require.Equal(t, transport.ErrClosed, requireFailed(t, l))
	})
}

func TestCloseLogsAndReportsNoLoss(t *testing.T) {
	for name, c := range map[string]struct {
		mute  bool
		dials int // that the server accepts; the next one hangs
		cut   bool
	}{
		"while it listens":         {dials: 1},
		"while no answer comes":    {dials: 1, mute: true},
		"during the first dial":    {},
		"during the dial after it": {dials: 1, cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{t: t}
				f.Answer(f.answer)
				f.mute.Store(c.mute)
				var log bytes.Buffer
				var lost []error
				s := New(Config{
					Dial: func(ctx context.Context) (redis.Conn, error) {
						if len(f.Dials()) == c.dials {
							return hangingDial(ctx)
						}
						return f.Dial(ctx)
					},
					OnLost: func(err error) { lost = append(lost, err) },
					Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
				})
				subscribed := subscribeLater(s, "c")
				synctest.Wait()
				if c.cut {
					f.Cut()
					time.Sleep(time.Second)
					synctest.Wait()
					require.Len(t, lost, 1)
					log.Reset()
					lost = nil
				}
				start := time.Now()
				mustClose(t, s)
				require.Zero(t, time.Since(start), "Close ends a dial")
				<-subscribed
				require.Empty(t, log.String())
				require.Empty(t, lost)
			})
		})
	}
}

func TestConnectionDialedDuringCloseIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{t: t}
		f.Answer(f.answer)
		dialed := make(chan struct{})
		s := New(Config{Dial: func(ctx context.Context) (redis.Conn, error) {
			<-dialed // regardless of ctx
			return f.Dial(ctx)
		}})
		subscribeLater(s, "c")
		synctest.Wait()
		go func() {
			synctest.Wait()
			close(dialed)
		}()
		mustClose(t, s)
		synctest.Wait()
		require.Zero(t, f.Open())
	})
}
