package watchdog

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// slow is a logger that takes its time for each line, as one that writes to a slow disk.
type slow struct{ slog.Handler }

func (slow) Enabled(context.Context, slog.Level) bool { return true }

func (slow) Handle(context.Context, slog.Record) error {
	time.Sleep(2 * time.Millisecond)
	return nil
}

func TestManyHoldersHearOfTheirLossInTimeBesideASlowLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(int, *Lease) (bool, error) { return false, errors.New("unreachable") }}
		w := New(Config{Renew: s.renew, Margin: margin, Logger: slog.New(slow{slog.DiscardHandler})})
		defer w.Close()
		began := time.Now()
		var all []*holder
		for range 1000 {
			all = append(all, hold(w, 30*time.Second, false))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, h := range all {
			require.Equal(t, 1, h.times)
			require.Less(t, h.at.Sub(began), 30*time.Second, "the server gives the lock to others")
		}
	})
}
