package rmultilock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
)

// stallable returns twenty locks on a transport that can stall. The server knows their scripts.
func stallable(t *testing.T) (*redistest.MiniServer, *faketransport.Stalling, *rmultilock.Lock) {
	t.Helper()
	s := redistest.Mini(t, embedded.WithInProcess())
	tr, client := callers.Stalling(t, s, redlatch.WithPollCap(time.Hour))
	l := rmultilock.New(client, names(t, 20)...)
	require.NoError(t, take(t, l).Unlock())
	synctest.Wait() // only the next reply can be lost
	return s, tr, l
}

func TestLocksWithLostReplyReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, l := stallable(t)
		s.LoseReplies(1)
		_, err := l.TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		free(t, s, l.Names())
		require.NoError(t, take(t, l).Unlock())
	})
}

func TestLateGrantsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tr, l := stallable(t)
		tr.Mute(true)
		ctx, cancel := context.WithCancel(t.Context())
		came := later(ctx, l)
		synctest.Wait()
		require.Len(t, left(t, s, l.Names()), 20)
		cancel()
		require.ErrorIs(t, (<-came).Err, redlatch.ErrUncertain)
		tr.Mute(false)
		time.Sleep(time.Second)
		require.Empty(t, left(t, s, l.Names()))
	})
}

func TestReleaseResentAfterLostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tr, l := stallable(t)
		h := take(t, l)
		s.LoseReplies(1)
		require.NoError(t, h.Unlock())
		require.Empty(t, left(t, s, l.Names()))

		// If the server does not reply, Unlock returns and the release continues.
		h = take(t, l)
		tr.Stall(true)
		err := h.Unlock()
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		require.Len(t, unwrap(err), 20)
		tr.Stall(false)
		free(t, s, l.Names())
	})
}

func TestWaiterPollsAfterMissedMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, l := stallable(t)
		takeOne(t, callers.InProcess(t, s), l.Names()[7], rlock.WithLease(2*time.Hour))
		came := later(t.Context(), l)
		time.Sleep(time.Minute)
		s.Do(t, "DEL", l.Names()[7]) // and the message is lost
		time.Sleep(time.Minute)
		require.Empty(t, came)
		s.DropSubscribers()
		require.NoError(t, must(t, came).Unlock())
		free(t, s, l.Names())
	})
}

// witness collects an observer's events.
type witness struct {
	mu   sync.Mutex // guards seen
	seen []any
}

func (w *witness) see(e any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, e)
}

// since returns the events since the last call.
func (w *witness) since() []any {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

// The observer sees locks that were released for lack of replicas as not acquired.
func TestReplicaWaitsRunConcurrently(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	replica := redistest.StartReplica(t, s)
	seen, all := &witness{}, names(t, 40)
	waitingFor := func(timeout time.Duration) *rmultilock.Lock {
		c := connect(t, s.URL(), redlatch.WithReplicaSync(1, timeout), redlatch.WithObserver(observed.Outcomes(seen.see)))
		var members []rmultilock.Member
		for i, name := range all {
			switch {
			case i < 20:
				members = append(members, rlock.New(c, name))
			case i < 30:
				members = append(members, rfairlock.New(c, name))
			default:
				members = append(members, rfencedlock.New(c, name))
			}
		}
		return rmultilock.Of(members...)
	}
	l := waitingFor(soon)
	require.NoError(t, take(t, l).Unlock()) // the server knows the scripts
	s.Do(t, "CONFIG", "RESETSTAT")
	h := take(t, l)
	waits := s.CommandStats(t)["wait"]
	require.Positive(t, waits)
	// How many calls share one depends on when they are queued (TestQueuedCallsShareOneWait). One after another, all
	// would have their own.
	require.Less(t, waits, int64(len(all)/2))
	inner, err := l.Lock(h.Context(within(t)))
	require.NoError(t, err)
	require.Equal(t, waits, s.CommandStats(t)["wait"], "re-entries do not wait")
	require.NoError(t, inner.Unlock())
	require.NoError(t, h.Unlock())
	require.Len(t, seen.since(), 3*3*len(all), "each is acquired, ended and released, three times")

	replica.Kill()
	_, err = waitingFor(1200 * time.Millisecond).Lock(within(t))
	require.ErrorIs(t, err, redlatch.ErrNotReplicated)
	require.ErrorContains(t, err, all[0])
	events := seen.since()
	require.Len(t, events, len(all), "no caller acquired a lock")
	for _, e := range events {
		refused, is := e.(redlatch.NotAcquired)
		require.True(t, is)
		require.Contains(t, all, refused.Name)
		require.Equal(t, 1, refused.Attempts)
		require.Greater(t, refused.Wait, time.Second, "including the wait for replicas")
		require.ErrorIs(t, refused.Err, redlatch.ErrNotReplicated)
	}
	for _, name := range all {
		require.Zero(t, s.Do(t, "EXISTS", name), "it is released")
	}
}

func TestNotAcquiredObserverReportsMissingReplicas(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	type caller struct{}
	var mu sync.Mutex
	refused := map[string]any{}
	c := connect(t, s.URL(), redlatch.WithReplicaSync(1, 50*time.Millisecond), redlatch.WithObserver(redlatch.Observer{
		NotAcquired: func(ctx context.Context, e redlatch.NotAcquired) {
			mu.Lock()
			defer mu.Unlock()
			refused[e.Op+" "+e.Kind+" "+e.Name] = ctx.Value(caller{})
		},
	}))
	all := names(t, 2)
	_, err := rmultilock.Of(rfairlock.New(c, all[0]), rfairlock.New(c, all[1])).Lock(context.WithValue(within(t), caller{}, "me"))
	require.ErrorIs(t, err, redlatch.ErrNotReplicated)
	require.Equal(t, map[string]any{"lock fair " + all[0]: "me", "lock fair " + all[1]: "me"}, refused)
}

func TestLocksReleasedBeforeReplicaWaitAreNotAcquired(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	redistest.StartReplica(t, s)
	seen := &witness{}
	c := connect(t, s.URL(), redlatch.WithReplicaSync(1, soon), redlatch.WithObserver(observed.Outcomes(seen.see)))
	all := names(t, 2)
	slices.Sort(all) // the order of acquisition
	other, err := rfairlock.New(connect(t, s.URL()), all[1]).TryLock(t.Context())
	require.NoError(t, err)
	_, err = rmultilock.Of(rfairlock.New(c, all[0]), rfairlock.New(c, all[1])).TryLock(within(t))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	var refused []string
	for _, e := range seen.since() {
		n, is := e.(redlatch.NotAcquired)
		require.True(t, is, "%T", e)
		refused = append(refused, n.Name)
	}
	require.ElementsMatch(t, all, refused)
	require.NoError(t, other.Unlock())
	require.Zero(t, s.Do(t, "EXISTS", all[0]), "it is released")
}

func TestMultiLockAcquiresBusyLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		here, there := callers.InProcess(t, s), callers.InProcess(t, s)
		for _, busy := range [][]*redlatch.Client{{here, here, here}, {here, here, here, there, there}} {
			all := names(t, 3)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for _, c := range busy {
				wg.Go(func() {
					for ctx.Err() == nil {
						_ = rlock.New(c, all[1]).Do(ctx, func(context.Context) error { time.Sleep(time.Millisecond); return nil })
					}
				})
			}
			for range testlevel.Rounds(3, 10) {
				require.NoError(t, take(t, rmultilock.New(here, all...)).Unlock())
			}
			cancel()
			wg.Wait()
			free(t, s, all)
		}
	})
}
