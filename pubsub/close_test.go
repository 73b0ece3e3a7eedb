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
)

func TestCloseLogsAndReportsNoLoss(t *testing.T) {
	for name, c := range map[string]struct {
		mute  bool
		dials int // that the server takes; the next one hangs
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
				f.mute.Store(c.mute)
				var log bytes.Buffer
				var lost []error
				s := New(Config{
					Dial: func(ctx context.Context) (redis.Conn, error) {
						if len(f.dialTimes()) == c.dials {
							return hangingDial(ctx)
						}
						return f.dial(ctx)
					},
					OnLost: func(err error) { lost = append(lost, err) },
					Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
				})
				subscribed := subscribeLater(s, "c")
				synctest.Wait()
				if c.cut {
					f.cut()
					time.Sleep(time.Second)
					synctest.Wait()
					require.Len(t, lost, 1)
					log.Reset()
					lost = nil
				}
				mustClose(t, s)
				<-subscribed
				require.Empty(t, log.String())
				require.Empty(t, lost)
			})
		})
	}
}
