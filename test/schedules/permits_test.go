package schedules

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/schedule"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/transport"
)

// permits is the size of a semaphore.
const permits = 3

// taker is a caller of a semaphore.
type taker struct {
	*world
	*schedule.Actor
	semaphore *rsemaphore.Semaphore
	returns   *rsemaphore.Semaphore // belongs to a client that stays open
}

// acquire reports whether it acquired n permits.
func (u *taker) acquire(n int) bool {
	patience := []time.Duration{time.Nanosecond, 3 * time.Microsecond, 20 * time.Millisecond, time.Second, time.Hour, time.Hour}
	ctx, cancel := context.WithTimeout(context.Background(), patience[u.Pick(len(patience))])
	defer cancel()
	acquire := u.semaphore.Acquire
	if u.Pick(8) == 0 {
		acquire = u.semaphore.TryAcquire
	} else if u.judges {
		defer u.server.waits(key, int64(n), cancel)()
	}
	return !u.failed(acquire(ctx, n), redlatch.ErrNotAcquired, context.DeadlineExceeded, context.Canceled)
}

// use holds n permits for a while and releases them.
func (u *taker) use(n int) {
	durations := []time.Duration{0, 0, time.Microsecond, time.Millisecond, 1500 * time.Millisecond, 5 * time.Second}
	u.Sleep(durations[u.Pick(len(durations))])
	if u.Pick(4) == 0 {
		u.server.cancel() // a caller is canceled while it is being woken
	}
	for {
		err := u.returns.Release(context.Background(), n)
		if u.failed(err); !errors.Is(err, transport.ErrNotSent) {
			return
		}
	}
}

func TestSemaphoreSchedules(t *testing.T) {
	schedule.Run(t, schedules(), func(t *testing.T, s *schedule.Schedule) {
		t.Helper()
		w := newWorld(t, s, 2)
		for _, n := range w.server.networks {
			n.worst = faketransport.Late // a lost reply would lose permits
		}
		w.server.lock(key).permits = permits
		for i := range callers {
			u := &taker{world: w, semaphore: rsemaphore.New(w.clients[i%2], key), returns: rsemaphore.New(w.clients[1], key)}
			s.Go(fmt.Sprint("caller ", i), func(a *schedule.Actor) {
				u.Actor = a
				for range rounds {
					if n := 1 + a.Pick(permits); u.acquire(n) {
						u.use(n)
					}
					a.Yield()
				}
			})
		}
		w.end()
		require.EqualValues(t, permits, w.server.lock(key).permits)
	})
}
