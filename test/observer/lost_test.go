package observer_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// The context of Do ends before the observer has heard that the hold is lost, and Unlock does not wait
// for the observer.
func TestAReleaseIsReportedAfterTheEndOfALostHold(t *testing.T) {
	t.Parallel()
	var order []string // of calls that come one after the other
	unlocked, released := make(chan struct{}), make(chan redlatch.Released, 1)
	srv := redistest.Shared(t)
	client := open(t, srv.URL(), redlatch.WithObserver(redlatch.Observer{
		Ended: func(context.Context, redlatch.Ended) {
			select {
			case <-unlocked:
			case <-time.After(soon):
			}
			order = append(order, "ended")
		},
		Released: func(_ context.Context, e redlatch.Released) {
			order = append(order, "released")
			released <- e
		},
	}))
	l := rlock.New(client, redistest.Key(t))
	hold, err := l.Lock(t.Context(), rlock.WithWatchdog(3*time.Second))
	require.NoError(t, err)
	ctx := hold.Context(t.Context())
	srv.Do(t, "DEL", l.Name())
	<-ctx.Done()
	err = hold.Unlock()
	close(unlocked)
	require.ErrorIs(t, err, redlatch.ErrLost)
	e := <-released
	require.Equal(t, err, e.Err)
	require.Equal(t, hold.Owner(), e.Owner)
	require.Positive(t, e.Took)
	require.Equal(t, []string{"ended", "released"}, order)
}

// depth is a context that knows how many calls it takes to ask it.
type depth struct{ context.Context }

func (d depth) Value(key any) any {
	if key == (mark{"depth"}) {
		return runtime.Callers(0, make([]uintptr, 4096))
	}
	return d.Context.Value(key)
}

// A program may lock anew with the context of the end of a hold, for as long as it runs.
func TestContextsOfEndsDoNotNest(t *testing.T) {
	t.Parallel()
	ended := make(chan context.Context, 1)
	client := open(t, redistest.Shared(t).URL(), redlatch.WithObserver(redlatch.Observer{
		Ended: func(ctx context.Context, _ redlatch.Ended) { ended <- ctx },
	}))
	l := rlock.New(client, redistest.Key(t))
	again := func(ctx context.Context) context.Context {
		hold, err := l.Lock(ctx)
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
		return <-ended
	}
	first := again(depth{t.Context()})
	last := first
	for range 50 {
		last = again(last)
	}
	require.Equal(t, first.Value(mark{"depth"}), last.Value(mark{"depth"}))
}
