package acquire_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/faketransport"
)

// behind is a queued caller whose turn never comes.
type behind struct {
	acquire.Waiter
	every    time.Duration
	answered time.Duration // when Redis answers another caller in the queue, 0 if never
	began    time.Time
	polls    int
}

func (b *behind) Enter(ctx context.Context, a *acquire.Acquisition) (bool, error) {
	return a.AwaitTurn(ctx, b, b.every)
}

func (b *behind) State() acquire.QueueState {
	return acquire.QueueState{Known: b.answered > 0 && time.Since(b.began) >= b.answered}
}

func (*behind) Came() bool { return false }

func (b *behind) Poll(context.Context, *acquire.Acquisition) (bool, error) {
	b.polls++
	return false, nil
}

type strategy struct{ *behind }

func (s strategy) Waiter(*acquire.Acquisition) acquire.Waiter { return s.behind }

func TestUnansweredQueuedCallerFailsAfterCommandTimeout(t *testing.T) {
	const command, patience = 3 * time.Second, time.Minute
	for name, c := range map[string]struct {
		every, answered, ends time.Duration
		want                  error
	}{
		"never answered":      {every: time.Second, ends: command, want: engine.ErrNotSent},
		"polls seldom":        {every: 10 * time.Second, ends: command, want: engine.ErrNotSent},
		"polls when it wakes": {ends: command, want: engine.ErrNotSent},
		"answered in time":    {every: time.Second, answered: 2 * time.Second, ends: patience, want: engine.ErrNotAcquired},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := engine.New(engine.Config{
					Transport: &faketransport.Fake{}, ClientID: uuid.New(), Lease: 30 * time.Second, Command: command,
					PollCap: time.Second, Logger: slog.New(slog.DiscardHandler),
				})
				began := time.Now()
				b := &behind{Waiter: acquire.Alone(), every: c.every, answered: c.answered, began: began}
				a := acquire.Acquisition{Engine: e, Kind: &stopped{}, Lock: "key", Claims: &granted{}, Began: began}
				ctx, cancel := context.WithTimeoutCause(t.Context(), patience, engine.ErrWaitOver)
				defer cancel()
				err := a.Run(ctx, strategy{b})
				require.ErrorIs(t, err, c.want)

				require.Equal(t, c.ends, time.Since(began))
				if c.every > 0 {
					require.InDelta(t, int(c.ends/c.every), b.polls, 1)
				}
				require.NoError(t, e.Close())
			})
		})
	}
}
