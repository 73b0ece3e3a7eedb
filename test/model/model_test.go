package model

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

const (
	key   = "lock"
	lease = 3 * time.Second
)

// trace runs clients on a server for a seed, and returns their steps.
func trace(t *testing.T, seed uint64, real bool, dial func() (redis.Conn, error)) []step {
	t.Helper()
	w := &world{rand: rand.New(rand.NewPCG(seed, 0)), real: real}
	var err error
	w.conn, err = dial()
	require.NoError(t, err)
	sub, err := dial()
	require.NoError(t, err)
	_, err = w.conn.Do("DEL", key)
	require.NoError(t, err)
	w.live(t, sub)
	return w.steps
}

func embeddedTrace(t *testing.T, seed uint64) (steps []step) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		server, err := embedded.Start(embedded.WithInProcess())
		require.NoError(t, err)
		defer server.Close()
		steps = trace(t, seed, false, func() (redis.Conn, error) { return server.Dial(t.Context()) })
	})
	return steps
}

// realTrace uses a server whose clock is not that of the bubble. Its replies take no time in the bubble.
func realTrace(t *testing.T, addr string, seed uint64) (steps []step) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		steps = trace(t, seed, true, func() (redis.Conn, error) { return redis.Dial("tcp", addr) })
	})
	return steps
}

func (w *world) live(t *testing.T, sub redis.Conn) {
	t.Helper()
	defer func() { _ = w.conn.Close(); _ = sub.Close() }()
	w.began, w.sub = time.Now(), redis.PubSubConn{Conn: sub}
	require.NoError(t, w.sub.Subscribe(channel))
	w.sub.Receive()
	var open []*redlatch.Client
	var callers sync.WaitGroup
	quiet := w.drawn(4) == 0
	for i := range 2 + w.drawn(2) {
		c := &client{world: w, id: i, latency: time.Millisecond + w.span(50*time.Millisecond), fences: w.drawn(2) == 0,
			subs: map[*subscription]struct{}{}, fenced: map[int64]bool{}}
		if !quiet {
			c.faults = 5 + w.drawn(40)
		}
		w.clients = append(w.clients, c)
		r, err := redlatch.NewWithTransport(c, redlatch.WithCommandTimeout(time.Second), redlatch.WithWatchdogTimeout(lease),
			redlatch.WithPollCap(2*time.Second), redlatch.WithLabel(""))
		require.NoError(t, err)
		open = append(open, r)
		callers.Go(func() { c.live(rlock.New(r, key)) })
	}
	if !quiet && w.drawn(4) == 0 {
		at := w.span(10 * time.Second)
		callers.Go(func() {
			time.Sleep(at)
			w.forget()
		})
	}
	callers.Wait()
	w.mu.Lock()
	for _, c := range w.clients {
		c.faults = 0
	}
	w.mu.Unlock()
	time.Sleep(3 * lease)
	for _, r := range open {
		require.NoError(t, r.Close())
	}
	w.flights.Wait()
}

func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n, _, _ := w.do("DEL", key); n == int64(1) {
		w.add(step{what: "deleted"})
	}
}

// live acquires the lock one or more times.
func (c *client) live(l *rlock.Lock) {
	for range 1 + c.drawn(2) {
		time.Sleep(c.span(2 * time.Second))
		var options []rlock.Option
		if c.drawn(3) == 0 {
			options = append(options, rlock.WithLease(lease))
		}
		ctx, cancel := context.WithCancel(context.Background())
		if c.drawn(2) == 0 {
			ctx, cancel = context.WithTimeout(context.Background(), c.span(4*time.Second))
		}
		c.emit("want", c.id, 0, 0)
		h, err := l.Lock(ctx, options...)
		if cancel(); err != nil {
			c.emit("gave up", c.id, 0, 0)
			continue
		}
		c.hold(h)
	}
}

func (c *client) hold(h *rlock.Hold) {
	owner := int(h.Owner().N())
	c.emit("acquired", c.id, owner, 0)
	stop := context.AfterFunc(h.Context(context.Background()), func() { c.emit("hold lost", c.id, owner, 0) })
	time.Sleep(c.span(5 * time.Second))
	if stop() {
		c.emit("unlock", c.id, owner, 0)
	}
	_ = h.Unlock()
	c.emit("unlocked", c.id, owner, 0)
}

var (
	seeds = flag.Uint64("seed", 1, "the first seed")
	count = flag.Int("traces", testlevel.Rounds(200, 10_000), "how many traces to check")
)

// requireBehaviors checks traces in batches.
func requireBehaviors(t *testing.T, pan string, first uint64, n int, trace func(seed uint64) []step) {
	t.Helper()
	const batch = 250
	undecided, most := 0, n/1000+1
	for ; n > 0; first, n = first+batch, n-batch {
		var traces [][]step
		for i := range min(n, batch) {
			steps := trace(first + uint64(i))
			if !fits(steps) {
				steps = nil
			}
			traces = append(traces, steps)
		}
		for i, rejected := range slices.Backward(check(t, pan, traces...)) { // the search ends with the first of them
			if rejected >= 0 {
				t.Fatalf("seed %d: the model rejects the last of these steps:\n%s", first+uint64(i), story(traces[i], rejected))
			}
			if rejected == tooLong {
				undecided++
				t.Logf("seed %d: undecided", first+uint64(i))
			}
		}
	}
	require.LessOrEqual(t, undecided, most)
}

func TestTracesAreBehaviorsOfModel(t *testing.T) {
	testlevel.All(t, "it needs Spin")
	testlevel.NoRace(t, "the traces take several times as long")
	t.Parallel()
	pan, half := compile(t), *count/2
	for part := range 2 {
		t.Run("embedded server "+strconv.Itoa(part), func(t *testing.T) {
			t.Parallel()
			requireBehaviors(t, pan, *seeds+uint64(part*half), half, func(seed uint64) []step { return embeddedTrace(t, seed) })
		})
	}
	t.Run("release without a message", func(t *testing.T) {
		t.Parallel()
		steps := embeddedTrace(t, *seeds)
		at := slices.IndexFunc(steps, func(s step) bool { return s.what == "run release" && s.value == 1 })
		require.GreaterOrEqual(t, at, 0)
		steps[at].value = unannounced
		seen, _ := encode(steps)
		require.Equal(t, steps[at], seen[check(t, pan, steps)[0]])
	})
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		requireBehaviors(t, pan, *seeds, min(*count, 250), func(seed uint64) []step { return realTrace(t, server.Addr(), seed) })
	})
}
