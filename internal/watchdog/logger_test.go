package watchdog

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// slow is a slow logger.
type slow struct{ slog.Handler }

func (slow) Enabled(context.Context, slog.Level) bool { return true }

func (slow) Handle(context.Context, slog.Record) error {
	time.Sleep(2 * time.Millisecond)
	return nil
}

func TestSlowLoggerDelaysNoLossNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(int, *Lease) (bool, error) { return false, errors.New("unreachable") }}
		w := New(Config{Renew: s.renew, Margin: margin, Logger: slog.New(slow{slog.DiscardHandler})})
		defer w.Close()
		began := time.Now()
		var all []*holder
		for range 1000 {
			all = append(all, hold(w, 30*time.Second, false))
		}
		sleep(time.Minute)
		for _, h := range all {
			require.Equal(t, 1, h.times)
			require.Less(t, h.at.Sub(began), 30*time.Second, "the server gives the lock to others")
		}
	})
}

func TestLossLogGivesReason(t *testing.T) {
	for reason, fixed := range map[string]bool{"its own lease expired": true, "the lease was not renewed in time": false} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			s := &server{answer: func(int, *Lease) (bool, error) { return false, errors.New("unreachable") }}
			w := New(Config{Renew: s.renew, Margin: margin, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			hold(w, 30*time.Second, fixed)
			sleep(time.Minute)
			w.Close()
			require.Contains(t, log.String(), `msg="redlatch: lock lost: `+reason+`"`)
			require.Equal(t, 1, strings.Count(log.String(), "lock lost"))
		})
	}
}

// stuck is a logger that blocks until open is closed.
type stuck struct {
	slog.Handler

	open chan struct{}
}

func (stuck) Enabled(context.Context, slog.Level) bool { return true }

func (s stuck) Handle(context.Context, slog.Record) error {
	<-s.open
	return nil
}

func TestBlockedLoggerDelaysNoLossOrRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(call int, _ *Lease) (bool, error) {
			if call == 1 {
				return false, errors.New("busy")
			}
			return true, nil
		}}
		logger := stuck{slog.DiscardHandler, make(chan struct{})}
		w := New(Config{Renew: s.renew, Margin: margin, Logger: slog.New(logger)})
		defer w.Close()
		defer close(logger.open)
		began := time.Now()
		renewed := hold(w, 30*time.Second, false)
		first, second := hold(w, 31*time.Second, true), hold(w, 40*time.Second, true)
		sleep(10 * time.Minute)
		require.Zero(t, renewed.times)
		require.Less(t, first.at.Sub(began), 31*time.Second)
		require.Equal(t, 1, second.times, "the first loss is not written yet")
		require.Less(t, second.at.Sub(began), 40*time.Second)
	})
}
