package observer_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestQueuedTellsThePositionInTheQueueOfAFairLock(t *testing.T) {
	t.Parallel()
	srv, client, w := watched(t)
	other := open(t, srv.URL())
	name := redistest.Key(t)
	hold, err := rfairlock.New(other, name).Lock(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wait := func(l *rlock.Lock) {
		wg.Go(func() {
			if h, err := l.Lock(ctx); err == nil {
				_ = h.Unlock() // it came as the test ended
			}
		})
	}
	fair := rfairlock.New(client, name)
	at := func(position int) {
		find(t, w, func(q redlatch.Queued) bool { return q.Position == position })
	}
	wait(fair)
	at(1)
	wait(rfairlock.New(other, name)) // another process, as the server sees it
	require.Eventually(t, func() bool { return srv.Do(t, "LLEN", "redisson_lock_queue:{"+name+"}") == int64(2) }, soon, time.Millisecond)
	wait(fair)
	at(3)
	tells, _ := find(t, w, func(redlatch.Attempted) bool { return true })
	require.Equal(t, hold.Owner(), tells.Holder, "on whom it waits")
	require.Positive(t, tells.TTL)
	require.NoError(t, hold.Unlock())
}

// Both callers must sleep when the lock is released. Nothing tells that they do: the test waits for
// longer each time that it has not seen both events.
func TestWokenTellsByWhat(t *testing.T) {
	t.Parallel()
	srv, client, w := watched(t)
	other := open(t, srv.URL())
	for pause := 20 * time.Millisecond; ; pause *= 2 {
		wakeTwo(t, client, other, pause)
		by := map[string]bool{}
		for _, s := range w.since() {
			if e, is := s.event.(redlatch.Woken); is {
				by[e.By] = true
			}
		}
		if by["message"] && by["turn"] {
			return
		}
		require.Less(t, pause, 2*time.Second, "%v", by)
	}
}

// wakeTwo has two callers of a client wait for a lock that another client has, for so long.
func wakeTwo(t *testing.T, client, other *redlatch.Client, pause time.Duration) {
	t.Helper()
	l := rlock.New(client, redistest.Key(t))
	theirs, err := rlock.New(other, l.Name()).Lock(t.Context())
	require.NoError(t, err)
	done := make(chan error, 2)
	lock := func() {
		h, err := l.Lock(t.Context())
		if err == nil {
			time.Sleep(10 * time.Millisecond)
			err = h.Unlock()
		}
		done <- err
	}
	go lock()
	require.Eventually(t, func() bool { return client.Stats().Subscriptions == 1 }, soon, time.Millisecond)
	go lock()
	require.Eventually(t, func() bool { return client.Stats().Waiting == 2 }, soon, time.Millisecond)
	time.Sleep(pause)
	require.NoError(t, theirs.Unlock())
	require.NoError(t, <-done)
	require.NoError(t, <-done)
}

// The hold is lost while the observer still hears of its acquisition.
func TestAnEndIsReportedAfterItsAcquisition(t *testing.T) {
	t.Parallel()
	srv, w := redistest.Shared(t), &witness{}
	w.do = func(e any) {
		if _, is := e.(redlatch.Acquired); is {
			time.Sleep(3500 * time.Millisecond)
		}
	}
	l := rlock.New(open(t, srv.URL(), redlatch.WithObserver(w.observer())), redistest.Key(t))
	hold, err := l.Lock(t.Context(), rlock.WithLease(3*time.Second))
	require.NoError(t, err)
	require.ErrorIs(t, hold.Err(), redlatch.LossLeaseOver)
	ended, all := find(t, w, func(redlatch.Ended) bool { return true })
	require.Equal(t, redlatch.LossLeaseOver, ended.Err)
	follows(t, "redlatch.Acquired", all[len(all)-1])
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	count := 0
	for _, s := range w.since() {
		if _, is := s.event.(redlatch.Ended); is {
			count++
		}
	}
	require.Equal(t, 1, count)
}

func TestDoGivesItsFunctionTheContextOfTheObserver(t *testing.T) {
	t.Parallel()
	_, client, w := watched(t)
	l := rlock.New(client, redistest.Key(t))
	oops := errors.New("oops")
	err := l.Do(context.WithValue(t.Context(), mark{"caller"}, "do"), func(ctx context.Context) error {
		require.Contains(t, ctx.Value(mark{"witness"}), "redlatch.DoStarted ")
		require.Equal(t, "do", ctx.Value(mark{"caller"}))
		inner, err := l.Lock(ctx) // it proves the hold
		require.NoError(t, err)
		require.NoError(t, inner.Unlock())
		return oops
	})
	require.ErrorIs(t, err, oops)
	ended, all := find(t, w, func(redlatch.DoEnded) bool { return true })
	require.ErrorIs(t, ended.Err, oops)
	require.Positive(t, ended.Took)
	require.False(t, ended.Panicked)
	for _, s := range all {
		switch s.event.(type) {
		case redlatch.DoStarted:
			require.Nil(t, s.chain, "the caller's, and not that of the acquisition")
		case redlatch.DoEnded:
			follows(t, "redlatch.DoStarted", s)
		}
	}
	require.Panics(t, func() {
		_ = l.Do(t.Context(), func(context.Context) error { panic("by the function") })
	})
	find(t, w, func(e redlatch.DoEnded) bool { return e.Panicked })
	require.Zero(t, client.Stats().Held)
}

func TestAnObserverThatPanicsDoesNoHarm(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	srv, w := redistest.Shared(t), &witness{do: func(any) { panic("by the observer") }}
	client := open(t, srv.URL(), redlatch.WithObserver(w.observer()), redlatch.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	l := rlock.New(client, redistest.Key(t))
	ran := false
	require.NoError(t, l.Do(context.WithValue(t.Context(), mark{"caller"}, "do"), func(ctx context.Context) error {
		ran = true
		require.Equal(t, "do", ctx.Value(mark{"caller"}))
		return ctx.Err()
	}))
	require.True(t, ran)
	require.Zero(t, client.Stats().Held)
	require.NoError(t, client.Close())
	require.Equal(t, 8, bytes.Count(logged.Bytes(), []byte("the observer panicked")), "%s", &logged)
}

// A third of a lease is over when a renewal is confirmed, and the loss margin does not count.
func TestRenewalsTellHowMuchTimeWasLeft(t *testing.T) {
	t.Parallel()
	_, client, w := watched(t)
	hold, err := rlock.New(client, redistest.Key(t)).Lock(t.Context(), rlock.WithWatchdog(9*time.Second))
	require.NoError(t, err)
	renewed, _ := find(t, w, func(redlatch.Renewed) bool { return true })
	require.Greater(t, renewed.Slack, 2*time.Second)
	require.Less(t, renewed.Slack, 6*time.Second)
	require.NoError(t, hold.Unlock())
}

func TestAClientTellsOfItsBeginAndItsEnd(t *testing.T) {
	t.Parallel()
	_, client, w := watched(t)
	require.NoError(t, client.Close())
	require.NoError(t, client.Close())
	all := w.since()
	require.Equal(t, observed.Opened{Client: client}, all[0].event)
	require.Equal(t, observed.Closed{Client: client}, all[len(all)-1].event)
	require.Len(t, all, 2)
}

// What follows is what the comment of Observer.Closed says.
func TestOfAClosedClientOnlyLateCallsAreReported(t *testing.T) {
	t.Parallel()
	_, client, w := watched(t)
	l := rlock.New(client, redistest.Key(t))
	hold, err := l.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, client.Close())
	before := w.since()
	require.Equal(t, observed.Closed{Client: client}, before[len(before)-1].event)
	require.IsType(t, redlatch.Ended{}, before[len(before)-2].event)

	require.ErrorIs(t, hold.Unlock(), redlatch.ErrClosed)
	_, err = l.Lock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrClosed)
	late := w.since()
	require.Len(t, late, 3)
	require.IsType(t, redlatch.Released{}, late[0].event)
	require.IsType(t, redlatch.Started{}, late[1].event)
	require.IsType(t, redlatch.NotAcquired{}, late[2].event)
	require.ErrorIs(t, late[2].event.(redlatch.NotAcquired).Err, redlatch.ErrClosed)
}

func TestSeveralObserversAreNotifiedAsOneIs(t *testing.T) {
	t.Parallel()
	first, second := &witness{}, &witness{}
	var outcomes []any
	client := open(t, redistest.Shared(t).URL(), redlatch.WithObserver(redlatch.Observers(first.observer(), redlatch.Observer{},
		observed.Outcomes(func(e any) { outcomes = append(outcomes, e) }), second.observer())))
	l := rlock.New(client, redistest.Key(t))
	require.NoError(t, l.Do(t.Context(), func(context.Context) error { return nil }))
	require.NoError(t, client.Close())
	events := func(w *witness) (of []any) {
		for _, s := range w.since() {
			of = append(of, s.event)
		}
		return of
	}
	all := events(first)
	require.Len(t, all, 8)
	require.Equal(t, all, events(second))
	require.Len(t, outcomes, 3)
	require.IsType(t, redlatch.Acquired{}, outcomes[0])
	require.IsType(t, redlatch.Ended{}, outcomes[1])
	require.IsType(t, redlatch.Released{}, outcomes[2])
	require.Zero(t, redlatch.Observers(redlatch.Observer{}, redlatch.Observer{}), "none of them has a function")
}

// What an observer returns is lost neither with one after it that returns nil, nor with one before it.
func TestNilOfOneObserverKeepsTheContextOfTheOthers(t *testing.T) {
	t.Parallel()
	none := observed.By(func(context.Context, any) context.Context { return nil })
	for name, join := range map[string]func(o redlatch.Observer) redlatch.Observer{
		"after":  func(o redlatch.Observer) redlatch.Observer { return redlatch.Observers(o, none) },
		"before": func(o redlatch.Observer) redlatch.Observer { return redlatch.Observers(none, o) },
		"both":   func(o redlatch.Observer) redlatch.Observer { return redlatch.Observers(none, o, none) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &witness{}
			l := rlock.New(open(t, redistest.Shared(t).URL(), redlatch.WithObserver(join(w.observer()))), redistest.Key(t))
			require.NoError(t, l.Do(t.Context(), func(ctx context.Context) error {
				require.Contains(t, ctx.Value(mark{"witness"}), "redlatch.DoStarted ")
				return nil
			}))
			for _, s := range w.since() {
				switch s.event.(type) {
				case redlatch.Acquired:
					follows(t, "redlatch.Started", s)
				case redlatch.DoEnded:
					follows(t, "redlatch.DoStarted", s)
				case redlatch.Ended, redlatch.Released:
					follows(t, "redlatch.Acquired", s)
				}
			}
		})
	}
}

// Each function gets the values of the caller's context, whichever others there are.
func TestAnObserverNeedNotHaveAllFunctions(t *testing.T) {
	t.Parallel()
	caller := mark{"caller"}
	for function, alone := range map[string]func(all redlatch.Observer) redlatch.Observer{
		"Started":     func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{Started: all.Started} },
		"NotAcquired": func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{NotAcquired: all.NotAcquired} },
		"Attempted":   func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{Attempted: all.Attempted} },
		"Acquired":    func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{Acquired: all.Acquired} },
		"DoStarted":   func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{DoStarted: all.DoStarted} },
		"DoEnded":     func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{DoEnded: all.DoEnded} },
		"Ended":       func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{Ended: all.Ended} },
		"Released":    func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{Released: all.Released} },
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			var from []any
			client := open(t, redistest.Shared(t).URL(), redlatch.WithObserver(alone(observed.By(func(ctx context.Context, _ any) context.Context {
				from = append(from, ctx.Value(caller))
				return nil // stands for ctx
			}))))
			l := rlock.New(client, redistest.Key(t))
			require.NoError(t, l.Do(context.WithValue(t.Context(), caller, "do"), func(context.Context) error {
				_, err := l.TryLock(context.WithValue(t.Context(), caller, "try"))
				require.ErrorIs(t, err, redlatch.ErrNotAcquired)
				return nil
			}))
			want := []any{"do"}
			switch function {
			case "NotAcquired", "Attempted":
				want = []any{"try"}
			case "Started":
				want = []any{"do", "try"}
			}
			require.Equal(t, want, from)
		})
	}
}
