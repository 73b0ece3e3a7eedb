package rlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

type witness struct {
	mu   sync.Mutex
	seen []any
}

func (w *witness) see(e any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, e)
}

// since returns and clears the events.
func (w *witness) since() []any {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

func next[E any](t *testing.T, w *witness) E {
	t.Helper()
	var found E
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i, e := range w.seen {
			if e, ok := e.(E); ok {
				found = e
				w.seen = append(w.seen[:i:i], w.seen[i+1:]...)
				return true
			}
		}
		return false
	}, soon, time.Millisecond, "no %T", found)
	return found
}

func TestObserverReportsHoldEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		w := &witness{}
		_, client := wired(t, ms, redlatch.WithObserver(observed.Outcomes(w.see)))
		l := rlock.New(client, "job")
		warm := take(t, l)
		require.NoError(t, again(t, l, warm).Unlock())
		require.NoError(t, warm.Unlock())
		w.since()
		hold, err := l.Lock(t.Context())
		require.NoError(t, err)
		inner, err := l.Lock(hold.Context(t.Context()))
		require.NoError(t, err)
		_, refused := l.TryLock(t.Context())
		require.Error(t, refused)
		require.NoError(t, inner.Unlock())
		require.NoError(t, hold.Unlock())
		owner := hold.Owner()
		require.Equal(t, []any{
			redlatch.Acquired{Op: "lock", Name: "job", Kind: "plain", Owner: owner, Wait: ms, Attempts: 1},
			redlatch.Acquired{Op: "lock", Name: "job", Kind: "plain", Owner: owner, Wait: ms, Reentry: true},
			redlatch.NotAcquired{Op: "try-lock", Name: "job", Kind: "plain", Wait: ms, Attempts: 1, Outcome: "refused", Err: refused},
			redlatch.Ended{Name: "job", Kind: "plain", Owner: owner, Held: 2 * ms, End: "unlocked"},
			redlatch.Released{Name: "job", Kind: "plain", Owner: owner, Took: ms},
			redlatch.Ended{Name: "job", Kind: "plain", Owner: owner, Held: 4 * ms, End: "unlocked"},
			redlatch.Released{Name: "job", Kind: "plain", Owner: owner, Took: ms},
		}, w.since())
	})
}

func TestObserverReportsEndReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{}
		srv, client := inBubble(t, redlatch.WithObserver(observed.Outcomes(w.see)))
		l := rlock.New(client, "job")
		ended := func(want error) {
			t.Helper()
			e := next[redlatch.Ended](t, w)
			require.Equal(t, want, e.Err)
			require.Equal(t, "job", e.Name)
		}
		hold := take(t, l, rlock.WithWatchdog(shortLease))
		srv.Do(t, "DEL", "job")
		ended(redlatch.LossTaken)
		renewal := next[redlatch.Renewed](t, w)
		require.Equal(t, 1, renewal.Holds)
		require.Equal(t, 1, renewal.Lost)
		require.NoError(t, renewal.Err)
		unlockErr := hold.Unlock()
		require.ErrorIs(t, unlockErr, redlatch.ErrLost)
		require.Equal(t, unlockErr, next[redlatch.Released](t, w).Err)

		require.NoError(t, take(t, l, rlock.WithLease(shortLease)).LetExpire())
		ended(nil)
		srv.Do(t, "DEL", "job")

		owner, err := take(t, l).HandOver()
		require.NoError(t, err)
		ended(redlatch.ErrHandedOver)
		w.since()
		resumed, err := l.Resume(t.Context(), owner)
		require.NoError(t, err)
		require.Equal(t, "resume", next[redlatch.Acquired](t, w).Op)
		require.NoError(t, resumed.Unlock())
		ended(nil)

		take(t, l, rlock.WithMaxHold(time.Second))
		ended(redlatch.ErrMaxHold)
		srv.Do(t, "DEL", "job")

		take(t, l)
		require.NoError(t, client.Close())
		ended(redlatch.ErrClosed)
	})
}

func TestObserverReportsReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{}
		lan, client := wired(t, 0, redlatch.WithObserver(observed.Outcomes(w.see)), noPoll())
		holdByHand(t, lan.srv, "job", forever)
		waiting := await(t.Context(), rlock.New(client, "job"))
		synctest.Wait()
		lan.reset()
		time.Sleep(time.Second)
		require.ElementsMatch(t, []any{
			redlatch.Reconnected{Connection: "subscriptions"}, redlatch.Woken{Name: "job", Kind: "plain", By: "gap"}, redlatch.Reconnected{Connection: "commands"},
		}, w.since())
		freeByHand(t, lan.srv, "job")
		require.NoError(t, waiting.acquired(t, time.Second).Unlock())
		require.Greater(t, next[redlatch.Acquired](t, w).Attempts, 2)
	})
}

// The next caller always gets the turn. Only with the first unlock does it also get the lock.
func TestObserverReportsTransfers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{}
		srv, client := inBubble(t, redlatch.WithObserver(observed.Outcomes(w.see)))
		l := rlock.New(client, "lock")
		loadScripts(t, client)
		for i, leave := range []func(*rlock.Hold) error{
			(*rlock.Hold).Unlock,
			func(h *rlock.Hold) error { _, err := h.HandOver(); return err },
			(*rlock.Hold).LetExpire,
			func(h *rlock.Hold) error { srv.Do(t, "DEL", "lock"); return h.LetExpire() },
			func(h *rlock.Hold) error {
				srv.Do(t, "DEL", "lock")
				holdByHand(t, srv, "lock", time.Second)
				return nil
			},
		} {
			hold := take(t, l)
			w.since()
			waiting := await(t.Context(), l)
			time.Sleep(time.Second)
			require.NoError(t, leave(hold))
			_ = hold.Unlock()
			require.NoError(t, waiting.acquired(t, time.Minute).Unlock())
			passed := next[redlatch.Acquired](t, w)
			require.Equal(t, i == 0, passed.Transferred)
			if i == 0 {
				require.Equal(t, 1, passed.Attempts)
				require.Equal(t, time.Second, passed.Wait)
			}
		}
	})
}

func TestInspectReportsOwner(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, srv redistest.Target) {
		t.Helper()
		l := rlock.New(connect(t, srv.URL()), redistest.Key(t))
		inspect := func() *admin.Inspection {
			t.Helper()
			in, err := admin.Inspect(t.Context(), l)
			require.NoError(t, err)
			require.Equal(t, l.Name(), in.Name)
			require.Equal(t, "plain", in.Kind)
			return in
		}
		in := inspect()
		require.Empty(t, in.Holders)
		require.Zero(t, in.TTL)

		hold := take(t, l)
		inner, err := l.Lock(hold.Context(t.Context()))
		require.NoError(t, err)
		in = inspect()
		require.NotEmpty(t, in.Holders)
		require.Equal(t, []admin.Holder{{Owner: hold.Owner(), Text: hold.Owner().String(), Count: 2, CountText: "2"}}, in.Holders)
		require.InDelta(t, 30, in.TTL.Seconds(), 8)

		srv.Do(t, "PERSIST", l.Name())
		require.Equal(t, redlatch.NoTTL, inspect().TTL)
		require.NoError(t, inner.Unlock())
		require.NoError(t, hold.Unlock())
	})
}

func TestInspectReportsForeignFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		calls := &faketransport.Stalling{Transport: redigoTransport(srv)}
		l := rlock.New(over(t, calls), "job")
		for value, count := range map[string]int64{"11": 11, "write": 0} {
			srv.Do(t, "HSET", "job", "mode", value)
			before := calls.Started()
			in, err := admin.Inspect(t.Context(), l)
			require.NoError(t, err)
			require.Equal(t, []admin.Holder{{Text: "mode", Count: count, CountText: value}}, in.Holders)
			require.Equal(t, before+1, calls.Started(), "one round trip")
		}
		srv.Do(t, "SET", "job", "no lock")
		_, err := admin.Inspect(t.Context(), l)
		requireOnly(t, err, "inspect", "job", redlatch.ErrWrongType)
	})
}

// A rejected caller is informed of the holder without another round trip.
func TestNotAcquiredReportsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, theirs := inBubble(t)
		calls := &faketransport.Stalling{Transport: redigoTransport(srv)}
		ours := rlock.New(over(t, calls), "job")
		hold := take(t, rlock.New(theirs, "job"))
		reported := func(op string, err error) {
			t.Helper()
			details := requireOnly(t, err, op, "job", redlatch.ErrNotAcquired)
			require.Equal(t, hold.Owner(), details.Holder)
			require.Greater(t, details.TTL, 19*time.Second)
			require.ErrorContains(t, err, hold.Owner().String())
		}
		before := calls.Started()
		_, err := ours.TryLock(t.Context())
		reported("try-lock", err)
		require.EqualValues(t, 1, calls.Started()-before)
		_, err = ours.Lock(t.Context(), rlock.WithWait(time.Second))
		reported("lock", err)
		// A caller in the local queue also receives the holder, without sending anything.
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		first := await(ctx, ours)
		time.Sleep(time.Second)
		before = calls.Started()
		_, err = ours.TryLock(t.Context())
		reported("try-lock", err)
		_, err = ours.Lock(t.Context(), rlock.WithWait(time.Second))
		reported("lock", err)
		require.Equal(t, before, calls.Started())
		leave()
		require.ErrorContains(t, first.failed(t, soon), hold.Owner().String())
		require.NoError(t, hold.Unlock())
		_, err = ours.TryLock(t.Context(), rlock.WithLease(0))
		require.Zero(t, requireOnly(t, err, "try-lock", "job", redlatch.ErrInvalid).Holder, "no query was sent")
	})
}
