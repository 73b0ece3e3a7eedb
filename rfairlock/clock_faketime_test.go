package rfairlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// farAway starts a server and a client that disagree about the time.
func farAway(t *testing.T, k *skew, opts ...redlatch.Option) (*redistest.MiniServer, *redlatch.Client) {
	t.Helper()
	srv := redistest.Mini(t, embedded.WithInProcess())
	calls := countTo(srv)
	calls.intercept = k.intercept
	return srv, over(t, calls, opts...)
}

func TestClockOffsetIsHowFarTheServerIsAhead(t *testing.T) {
	for _, ahead := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute, 300 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			e := &skew{ahead: ahead}
			_, client := farAway(t, e)
			got, err := client.ClockOffset(t.Context())
			require.NoError(t, err)
			require.InDelta(t, ahead, got, float64(time.Millisecond))
			refused := fmt.Errorf("%w", &transport.ServerError{Text: "NOPERM this user has no permissions"})
			e.fail.Store(&refused)
			_, err = client.ClockOffset(t.Context())
			require.True(t, transport.IsCode(err, "NOPERM"), err)
		})
	}
}

// waitersByHand queues two waiters that are alive by the server's clock.
func waitersByHand(t *testing.T, srv *redistest.MiniServer, e *skew) map[string]int64 {
	t.Helper()
	now := time.Now().Add(e.ahead)
	queueByHand(t, srv, "job", foreignHead, now.Add(time.Minute))
	queueByHand(t, srv, "job", foreignTail, now.Add(2*time.Minute))
	return deadlinesOf(t, srv, "job")
}

// The server is slow to reply to TIME.
func TestU23HostWhoseClockIsOffEvictsNoWaiterWithServerTime(t *testing.T) {
	for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			e := &skew{ahead: ahead, slow: time.Second}
			srv, client := farAway(t, e, redlatch.WithServerTime())
			holdByHand(t, srv, "job", time.Hour)
			before := waitersByHand(t, srv, e)
			ctx, cancel := context.WithCancel(t.Context())
			all := map[*waiter]bool{}
			for range 10 {
				all[await(ctx, rfairlock.New(client, "job"), rlock.WithWait(time.Hour))] = true
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			queue, after := queueOf(t, srv, "job"), deadlinesOf(t, srv, "job")
			require.Len(t, queue, 12)
			require.Equal(t, []string{foreignHead, foreignTail}, queue[:2])
			require.Equal(t, before[foreignHead], after[foreignHead])
			want := before[foreignTail] + time.Hour.Milliseconds()
			require.Equal(t, want, after[queue[2]], "neither expired nor hours away")
			require.Equal(t, int64(1), e.asked.Load())
			cancel()
			for w := range all {
				<-w.done
			}
		})
	}
}

func TestU23ReleasesOfOtherOwnersEvictNoWaiterWithServerTime(t *testing.T) {
	owner, err := redlatch.ParseOwner(foreignOwner)
	require.NoError(t, err)
	for name, act := range map[string]func(ctx context.Context, l *rlock.Lock) error{
		"force": func(ctx context.Context, l *rlock.Lock) error { _, err := l.ForceUnlock(ctx); return err },
		"as":    func(ctx context.Context, l *rlock.Lock) error { return l.UnlockAs(ctx, owner) },
		"resume": func(ctx context.Context, l *rlock.Lock) error {
			hold, err := l.Resume(ctx, owner)
			if err != nil {
				return err
			}
			return hold.Unlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &skew{ahead: -10 * time.Minute, slow: time.Second}
				srv, client := farAway(t, e, redlatch.WithServerTime())
				holdByHand(t, srv, "job", time.Hour)
				before := waitersByHand(t, srv, e)
				require.NoError(t, act(t.Context(), rfairlock.New(client, "job")))
				require.False(t, locked(t, srv, "job"))
				require.Equal(t, before, deadlinesOf(t, srv, "job"))
				require.Len(t, queueOf(t, srv, "job"), 2)
			})
		})
	}
}

func TestClockOfThisMachineIsTheOneThatCountsByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &skew{ahead: -10 * time.Minute}
		srv, client := farAway(t, e)
		require.NoError(t, take(t, rfairlock.New(client, "job")).Unlock())
		synctest.Wait()
		require.Equal(t, int64(1), e.asked.Load(), "the clocks are compared all the same")
		waitersByHand(t, srv, e) // dead, by this machine's clock
		require.NoError(t, take(t, rfairlock.New(client, "job")).Unlock())
		require.Empty(t, queueOf(t, srv, "job"))
	})
}

func TestClocksThatAreApartAreWarnedAboutOnce(t *testing.T) {
	const warning = "clock and the server's are apart"
	for ahead, warnings := range map[time.Duration]int{
		0: 0, 900 * time.Millisecond: 0, -900 * time.Millisecond: 0, 1100 * time.Millisecond: 1, -time.Hour: 1,
	} {
		synctest.Test(t, func(t *testing.T) {
			logged, log := redistest.NewJournal()
			e := &skew{ahead: ahead}
			_, client := farAway(t, e, redlatch.WithLogger(log))
			l := rfairlock.New(client, "job")
			for range 25 {
				require.NoError(t, take(t, l).Unlock())
				time.Sleep(24 * time.Second)
			}
			synctest.Wait()
			require.Len(t, logged.Lines(warning), warnings)
			require.InDelta(t, 10, e.asked.Load(), 1, "once a minute, while it is used")
			time.Sleep(time.Hour)
			require.InDelta(t, 10, e.asked.Load(), 1)
		})
	}
}
