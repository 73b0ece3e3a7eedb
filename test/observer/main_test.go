// Package observer_test tests the guarantees of redlatch.Observer and Client.Stats for every kind of
// lock.
package observer_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// soon bounds waits on a real server.
const soon = 20 * time.Second

// mark is the key of a context value that a caller or the witness has set.
type mark struct{ by string }

// calling returns a context with the mark of a caller.
func calling(t *testing.T, caller string) context.Context {
	t.Helper()
	return context.WithValue(t.Context(), mark{"caller"}, caller)
}

// seen is an event and its context.
type seen struct {
	event  any
	caller any   // the caller's mark
	chain  any   // the witness's mark, from the event that this one follows
	err    error // the context's
}

// witness records events, and marks the contexts that it returns.
type witness struct {
	do func(event any) // called for each event if not nil

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

// since returns the recorded events and forgets them.
func (w *witness) since() []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// events returns the recorded events of a type, once nothing runs, and forgets all.
func events[E any](w *witness) (of []E) {
	synctest.Wait()
	for _, s := range w.since() {
		if e, is := s.event.(E); is {
			of = append(of, e)
		}
	}
	return of
}

// last returns the last event of a type, once nothing runs.
func last[E any](t *testing.T, w *witness) (event E, of seen) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	found := false
	for _, s := range w.all {
		if e, is := s.event.(E); is {
			event, of, found = e, s, true
		}
	}
	require.True(t, found, "no %T", event)
	return event, of
}

// open connects a client to a server in memory.
func open(t *testing.T, srv *redistest.MiniServer, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.New(srv.Server.Dial, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// scene is a bubble with a server, and a client that a witness observes.
type scene struct {
	*testing.T
	srv    *redistest.MiniServer
	client *redlatch.Client
	w      *witness
}

// inBubble runs a test on fake time. The client has the observer, by default that of the witness.
func inBubble(t *testing.T, test func(x *scene), observers ...redlatch.Observer) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := &scene{T: t, srv: redistest.Mini(t, embedded.WithInProcess()), w: &witness{}}
		if observers == nil {
			observers = []redlatch.Observer{x.w.observer()}
		}
		x.client = open(t, x.srv, redlatch.WithObserver(observers[0]), redlatch.WithObserver(observers[1:]...))
		test(x)
	})
}

// The context of Do ends before the observer has seen the loss, and Unlock does not wait for the
// observer.
func TestReleaseReportedAfterLoss(t *testing.T) {
	t.Parallel()
	var order []string
	var released redlatch.Released
	inBubble(t, func(x *scene) {
		unlocked := make(chan struct{})
		client := open(x.T, x.srv, redlatch.WithObserver(redlatch.Observer{
			Ended: func(context.Context, redlatch.Ended) {
				<-unlocked
				order = append(order, "ended")
			},
			Released: func(_ context.Context, e redlatch.Released) {
				order = append(order, "released")
				released = e
			},
		}))
		l := rlock.New(client, "job")
		hold, err := l.Lock(x.Context(), rlock.WithWatchdog(3*time.Second))
		require.NoError(x, err)
		ctx := hold.Context(x.Context())
		x.srv.Do(x, "DEL", l.Name())
		<-ctx.Done()
		err = hold.Unlock()
		close(unlocked)
		require.ErrorIs(x, err, redlatch.ErrLost)
		synctest.Wait()
		require.Equal(x, []string{"ended", "released"}, order)
		require.Equal(x, err, released.Err)
		require.Equal(x, hold.Owner(), released.Owner)
	})
}

// depth is a context that counts the calls that it takes to read a value.
type depth struct{ context.Context }

func (d depth) Value(key any) any {
	if key == (mark{"depth"}) {
		return runtime.Callers(0, make([]uintptr, 4096))
	}
	return d.Context.Value(key)
}

// A program may lock again with the context of the end of a hold, any number of times.
func TestEndContextsDoNotNest(t *testing.T) {
	t.Parallel()
	var ended context.Context
	inBubble(t, func(x *scene) {
		l := rlock.New(x.client, "job")
		again := func(ctx context.Context) context.Context {
			hold, err := l.Lock(ctx)
			require.NoError(x, err)
			require.NoError(x, hold.Unlock())
			return ended
		}
		first := again(depth{x.Context()})
		last := first
		for range 50 {
			last = again(last)
		}
		require.Equal(x, first.Value(mark{"depth"}), last.Value(mark{"depth"}))
	}, redlatch.Observer{Ended: func(ctx context.Context, _ redlatch.Ended) { ended = ctx }})
}

func TestStatsCountHoldsAndWaiters(t *testing.T) {
	t.Parallel()
	inBubble(t, func(x *scene) {
		client := x.client
		require.Zero(x, client.Stats())
		l, fair := rlock.New(client, "plain"), rfairlock.New(client, "fair")
		first, err := l.Lock(x.Context())
		require.NoError(x, err)
		time.Sleep(200 * time.Millisecond)
		second, err := fair.Lock(x.Context())
		require.NoError(x, err)
		require.Equal(x, 2, client.Stats().Held)
		require.GreaterOrEqual(x, client.Stats().OldestHold, 200*time.Millisecond)

		ctx, cancel := context.WithCancel(x.Context())
		done := make(chan error, 2)
		go func() { _, err := l.Lock(ctx); done <- err }()
		go func() { _, err := fair.Lock(ctx); done <- err }()
		synctest.Wait()
		s := client.Stats() // the caller of the plain lock waits for the hold of its process
		require.Equal(x, 2, s.Waiting)
		require.Equal(x, 1, s.Subscriptions)

		by := map[redlatch.KindStats]bool{}
		for _, s := range client.StatsBy(strings.ToUpper) {
			require.Equal(x, s.Kind == "plain", s.OldestHold >= 200*time.Millisecond)
			s.OldestHold = 0
			by[s] = true
		}
		require.Equal(x, map[redlatch.KindStats]bool{
			{Kind: "plain", Group: "PLAIN", Held: 1, Waiting: 1}: true, {Kind: "fair", Group: "FAIR", Held: 1, Waiting: 1}: true,
		}, by)
		require.Len(x, client.StatsBy(nil), 2)

		cancel()
		require.Error(x, <-done)
		require.Error(x, <-done)
		require.NoError(x, first.Unlock())
		require.Less(x, client.Stats().OldestHold, 200*time.Millisecond, "of the second")
		require.Equal(x, 1, client.Stats().Held)
		require.NoError(x, second.Unlock())
		time.Sleep(time.Minute)
		require.Zero(x, client.Stats())
		require.Empty(x, client.StatsBy(nil))
	})
}

func TestStatsCountCallsInFlightAndInDoubt(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	p := redistest.NewProxy(t, srv.Addr())
	client, err := redlatch.Open(t.Context(), p.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	l := rlock.New(client, redistest.Key(t))
	hold, err := l.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, hold.Unlock())
	p.Blackhole(redistest.ToClient)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := l.Lock(ctx); done <- err }()
	require.Eventually(t, func() bool { return srv.Do(t, "EXISTS", l.Name()) == int64(1) }, soon, time.Millisecond)
	require.Equal(t, 1, client.Stats().InFlight)
	cancel()
	require.ErrorIs(t, <-done, redlatch.ErrUncertain)
	p.Reset()
	require.Eventually(t, func() bool { return client.Stats().InDoubt == 1 }, soon, time.Millisecond)
	p.Heal()
	require.Eventually(t, func() bool { return client.Stats() == redlatch.Stats{} }, 2*soon, 10*time.Millisecond)
}

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
