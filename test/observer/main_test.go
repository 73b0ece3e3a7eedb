// Package observer_test holds what redlatch.Observer and Client.Stats promise, for every
// kind of lock. It has tests only.
package observer_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
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

func TestMain(m *testing.M) { redistest.Main(m) }

// soon is far more than anything takes that is waited for.
const soon = 20 * time.Second

// mark is the key of what a caller, or the witness, has left in a context.
type mark struct{ by string }

// seen is an event and what its context said.
type seen struct {
	event  any
	caller any   // the caller's mark
	chain  any   // the witness's mark, of the event that this one follows
	err    error // the context's
}

// witness collects what is reported to an observer, and marks the contexts that it returns.
type witness struct {
	do func(event any) // not nil: runs for each event

	mu     sync.Mutex
	all    []seen
	marked int
}

func (w *witness) observer() redlatch.Observer { return observed.By(w.see) }

func (w *witness) see(ctx context.Context, e any) context.Context {
	if w.do != nil {
		w.do(e)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, seen{e, ctx.Value(mark{"caller"}), ctx.Value(mark{"witness"}), ctx.Err()})
	w.marked++
	return context.WithValue(ctx, mark{"witness"}, fmt.Sprintf("%T %d", e, w.marked))
}

// since returns what was seen and forgets it.
func (w *witness) since() []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// find waits for the event of a type, and returns it and all that was seen until then.
func find[E any](t *testing.T, w *witness, is func(E) bool) (E, []seen) {
	t.Helper()
	var found E
	var all []seen
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, s := range w.all {
			if e, ok := s.event.(E); ok && (is == nil || is(e)) {
				found, all = e, append([]seen{}, w.all...)
				return true
			}
		}
		return false
	}, soon, time.Millisecond, "no %T", found)
	return found, all
}

// open connects a client to a server.
func open(t *testing.T, url string, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.Open(t.Context(), url, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// watched connects a client that a witness observes.
func watched(t *testing.T, opts ...redlatch.Option) (*redistest.Server, *redlatch.Client, *witness) {
	t.Helper()
	srv, w := redistest.Shared(t), &witness{}
	return srv, open(t, srv.URL(), append(opts, redlatch.WithObserver(w.observer()))...), w
}

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

func TestStatsCountWhatThereIs(t *testing.T) {
	t.Parallel()
	client := open(t, redistest.Shared(t).URL())
	require.Zero(t, client.Stats())
	l, fair := rlock.New(client, redistest.Key(t)), rfairlock.New(client, redistest.Key(t))
	first, err := l.Lock(t.Context())
	require.NoError(t, err)
	time.Sleep(200 * time.Millisecond)
	beforeSecond := time.Now()
	second, err := fair.Lock(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, client.Stats().Held)
	require.GreaterOrEqual(t, client.Stats().OldestHold, 200*time.Millisecond)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { _, err := l.Lock(ctx); done <- err }()
	go func() { _, err := fair.Lock(ctx); done <- err }()
	require.Eventually(t, func() bool { // the caller of the plain lock waits for the other one of its process
		s := client.Stats()
		return s.Waiting == 2 && s.Subscriptions == 1
	}, soon, time.Millisecond)

	plain, others := 0, 0
	for _, s := range client.StatsBy(strings.ToUpper) {
		require.Equal(t, 1, s.Held)
		require.Equal(t, 1, s.Waiting)
		switch s.Group {
		case strings.ToUpper(l.Name()):
			require.Equal(t, "plain", s.Kind)
			require.GreaterOrEqual(t, s.OldestHold, 200*time.Millisecond)
			plain++
		case strings.ToUpper(fair.Name()):
			require.Equal(t, "fair", s.Kind)
			others++
		}
	}
	require.Equal(t, 1, plain)
	require.Equal(t, 1, others)
	require.Len(t, client.StatsBy(nil), 2)

	cancel()
	require.Error(t, <-done)
	require.Error(t, <-done)
	require.NoError(t, first.Unlock())
	oldest := client.Stats().OldestHold
	require.LessOrEqual(t, oldest, time.Since(beforeSecond), "it is that of the second")
	require.Equal(t, 1, client.Stats().Held)
	require.NoError(t, second.Unlock())
	require.Eventually(t, func() bool { return client.Stats() == redlatch.Stats{} }, soon, 10*time.Millisecond)
	require.Empty(t, client.StatsBy(nil))
}

func TestStatsCountCallsInFlightAndInDoubt(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	p := redistest.NewProxy(t, srv.Addr())
	client := open(t, p.URL())
	l := rlock.New(client, redistest.Key(t))
	hold, err := l.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, hold.Unlock())
	p.Blackhole(redistest.ToClient)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := l.Lock(ctx); done <- err }()
	require.Eventually(t, func() bool { return srv.Do(t, "EXISTS", l.Name()) == int64(1) }, soon, time.Millisecond) // it was sent
	require.Equal(t, 1, client.Stats().InFlight)
	cancel()
	require.ErrorIs(t, <-done, redlatch.ErrUncertain)
	p.Reset()
	require.Eventually(t, func() bool { return client.Stats().InDoubt == 1 }, soon, time.Millisecond)
	p.Heal()
	require.Eventually(t, func() bool { return client.Stats() == redlatch.Stats{} }, 2*soon, 10*time.Millisecond)
}

// It is cheap, however many holds there are.
func BenchmarkStats(b *testing.B) {
	client, err := redlatch.Open(b.Context(), redistest.Shared(b).URL())
	require.NoError(b, err)
	defer func() { require.NoError(b, client.Close()) }()
	for range 1000 {
		_, err := rlock.New(client, redistest.Key(b)).Lock(b.Context())
		require.NoError(b, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if client.Stats().Held != 1000 {
			b.Fatal("holds are missing")
		}
	}
}
