package rlock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// witness collects what is reported to an observer.
type witness struct {
	mu   sync.Mutex
	seen []any
}

// see takes in an event.
func (w *witness) see(e any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, e)
}

// since returns what was seen and forgets it.
func (w *witness) since() []any {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

// next waits for an event of a kind.
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

func TestObserverSeesTheLifeOfAHold(t *testing.T) {
	t.Parallel()
	w := &witness{}
	_, client := onShared(t, redlatch.WithObserver(observed.Outcomes(w.see)))
	l := rlock.New(client, redistest.Key(t))
	hold, err := l.Lock(t.Context())
	require.NoError(t, err)
	inner, err := l.Lock(hold.Context(t.Context()))
	require.NoError(t, err)
	_, refused := l.TryLock(t.Context())
	require.Error(t, refused)
	require.NoError(t, inner.Unlock())
	require.NoError(t, hold.Unlock())
	name, owner := l.Name(), hold.Owner()
	require.Equal(t, []any{
		redlatch.Acquired{Op: "lock", Name: name, Kind: "plain", Owner: owner, Attempts: 1},
		redlatch.Acquired{Op: "lock", Name: name, Kind: "plain", Owner: owner, Reentry: true},
		redlatch.NotAcquired{Op: "trylock", Name: name, Kind: "plain", Attempts: 1, Err: refused},
		redlatch.Ended{Name: name, Kind: "plain", Owner: owner},
		redlatch.Released{Name: name, Kind: "plain", Owner: owner},
		redlatch.Ended{Name: name, Kind: "plain", Owner: owner},
		redlatch.Released{Name: name, Kind: "plain", Owner: owner},
	}, timeless(t, w.since()))
}

// timeless takes the durations out of events that must have one.
func timeless(t *testing.T, events []any) []any {
	t.Helper()
	out := make([]any, 0, len(events))
	for _, e := range events {
		switch v := e.(type) {
		case redlatch.Acquired:
			out = append(out, zeroed(t, &v.Wait, func() any { return v }))
		case redlatch.NotAcquired:
			out = append(out, zeroed(t, &v.Wait, func() any { return v }))
		case redlatch.Ended:
			out = append(out, zeroed(t, &v.Held, func() any { return v }))
		case redlatch.Released:
			out = append(out, zeroed(t, &v.Took, func() any { return v }))
		default:
			out = append(out, e)
		}
	}
	return out
}

func zeroed(t *testing.T, d *time.Duration, event func() any) any {
	t.Helper()
	require.Positive(t, *d, "%T", event())
	require.Less(t, *d, soon)
	*d = 0
	return event()
}

func TestObserverSeesWhyHoldsEnd(t *testing.T) {
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

func TestObserverSeesTransferredTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{}
		_, client := inBubble(t, redlatch.WithObserver(observed.Outcomes(w.see)))
		l := rlock.New(client, "lock")
		loadScripts(t, client)
		w.since()
		first := take(t, l)
		require.False(t, next[redlatch.Acquired](t, w).Transferred)
		second := await(t.Context(), l)
		time.Sleep(time.Second)
		require.NoError(t, first.Unlock())
		<-second.done
		require.NoError(t, second.err)
		passed := next[redlatch.Acquired](t, w)
		require.True(t, passed.Transferred)
		require.Equal(t, 1, passed.Attempts)
		require.Equal(t, time.Second, passed.Wait)
		require.NoError(t, second.hold.Unlock())
	})
}

func TestObserverSeesConnectionsComeBack(t *testing.T) {
	t.Parallel()
	w := &witness{}
	srv := redistest.Start(t)
	client := connect(t, srv.URL(), redlatch.WithObserver(observed.Outcomes(w.see)), noPoll())
	l := rlock.New(client, redistest.Key(t))
	holdByHand(t, srv, l.Name(), forever)
	waiting := await(t.Context(), l)
	awaitWaiters(t, srv, l.Name())
	srv.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	require.Equal(t, redlatch.Reconnected{Connection: "subscriptions"}, next[redlatch.Reconnected](t, w))
	require.Equal(t, redlatch.Gap{Name: l.Name(), Kind: "plain"}, next[redlatch.Gap](t, w))
	srv.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	until(t, soon, "an answer", func() bool { // it connects again when there is something to do
		_, err := l.IsLocked(t.Context())
		return err == nil
	})
	require.Equal(t, redlatch.Reconnected{Connection: "commands"}, next[redlatch.Reconnected](t, w))
	freeByHand(t, srv, l.Name())
	<-waiting.done
	require.NoError(t, waiting.err)
	require.Greater(t, next[redlatch.Acquired](t, w).Attempts, 2)
	require.NoError(t, waiting.hold.Unlock())
}

// The turn is passed on when a hold is handed over, too, but not the lock.
func TestObserverIsNotNotifiedOfAHandOverThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{}
		srv, client := inBubble(t, redlatch.WithObserver(observed.Outcomes(w.see)))
		l := rlock.New(client, "lock")
		for _, leave := range []func(*rlock.Hold) error{
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
			require.False(t, next[redlatch.Acquired](t, w).Transferred)
		}
	})
}

func TestObserverThatPanicsDoesNoHarm(t *testing.T) {
	t.Parallel()
	logged, log := newJournal()
	srv, client := onShared(t, log, redlatch.WithObserver(observed.Outcomes(func(any) { panic("by the observer") })))
	l := rlock.New(client, redistest.Key(t))
	hold, err := l.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, hold.Unlock())
	require.False(t, locked(t, srv, l.Name()))
	require.Equal(t, 3, logged.count("the observer panicked"))
}
