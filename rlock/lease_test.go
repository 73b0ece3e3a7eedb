package rlock_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// counter is a transport that counts calls but does not send them.
type counter struct{ starts, subscribes atomic.Int64 }

func (c *counter) Start(_ *transport.Call, done transport.Done) {
	c.starts.Add(1)
	done(nil, nil)
}

func (c *counter) Subscribe(context.Context, string) (transport.Subscription, error) {
	c.subscribes.Add(1)
	return nil, transport.ErrNotSent
}

func (*counter) PublishCommand() string { return "SPUBLISH" }
func (*counter) Close() error           { return nil }

func (c *counter) sent() int64 { return c.starts.Load() + c.subscribes.Load() }

type clusterCounter struct{ counter }

func (*clusterCounter) Slot(key string) int { return transport.HashSlot(key) }

func TestInvalidLeaseRejectedWithoutRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := &counter{}
		l := rlock.New(over(t, tr), "job")
		for name, opts := range map[string][]rlock.Option{
			"none":                       {rlock.WithLease(0)},
			"negative":                   {rlock.WithLease(-time.Second)},
			"microseconds":               {rlock.WithLease(999 * time.Microsecond)},
			"centuries":                  {rlock.WithLease(limits.Max + time.Millisecond)},
			"the longest":                {rlock.WithLease(1<<63 - 1)},
			"no watchdog":                {rlock.WithWatchdog(0)},
			"short watchdog":             {rlock.WithWatchdog(time.Microsecond)},
			"milliseconds":               {rlock.WithWatchdog(30 * time.Millisecond)},
			"eternal watchdog":           {rlock.WithWatchdog(limits.Max + 1)},
			"fixed and renewed":          {rlock.WithLease(time.Second), rlock.WithWatchdog(time.Second)},
			"fixed and maximum":          {rlock.WithLease(time.Minute), rlock.WithMaxHold(time.Minute)},
			"no maximum":                 {rlock.WithMaxHold(0)},
			"negative maximum":           {rlock.WithMaxHold(-time.Second)},
			"short maximum":              {rlock.WithMaxHold(time.Microsecond)},
			"eternal maximum":            {rlock.WithMaxHold(limits.Max + 1)},
			"no owner":                   {rlock.WithOwner(codec.Owner{})},
			"poll interval without unit": {rlock.WithPolling(10)},
			"no polls":                   {rlock.WithPolling(0)},
			"negative poll interval":     {rlock.WithPolling(-time.Second)},
			"eternal polls":              {rlock.WithPolling(limits.Max + 1)},
		} {
			_, err := l.Lock(t.Context(), opts...)
			require.ErrorIs(t, err, redlatch.ErrInvalid, name)
			_, err = l.TryLock(t.Context(), opts...)
			requireOnly(t, err, "try-lock", "job", redlatch.ErrInvalid)
			if name != "no owner" {
				_, err = l.Resume(t.Context(), newOwner(), opts...)
				requireOnly(t, err, "resume", "job", redlatch.ErrInvalid)
			}
			ran := false
			err = l.Do(t.Context(), func(context.Context) error { ran = true; return nil }, opts...)
			require.ErrorIs(t, err, redlatch.ErrInvalid, name)
			require.False(t, ran)
		}
		_, err := l.Lock(t.Context(), rlock.WithPolling(limits.Max+1))
		require.ErrorContains(t, err, "is more than 100 years")
		_, err = l.Resume(t.Context(), codec.Owner{})
		requireOnly(t, err, "resume", "job", redlatch.ErrInvalid)
		require.Zero(t, tr.sent())
	})
}

// A port of tryLock(10, 60, SECONDS) may forget the unit.
func TestInvalidWaitRejectedWithoutRequest(t *testing.T) {
	t.Parallel()
	tr := &counter{}
	l := rlock.New(over(t, tr), "job")
	for _, wait := range []time.Duration{10, 999 * time.Microsecond, -1, -time.Hour} {
		_, err := l.Lock(t.Context(), rlock.WithWait(wait))
		require.ErrorIs(t, err, redlatch.ErrInvalid, wait)
		require.Equal(t, wait > 0, strings.Contains(err.Error(), "add a unit"), err)
	}
	for _, wait := range []time.Duration{0, time.Second} {
		_, err := l.TryLock(t.Context(), rlock.WithWait(wait))
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		_, err = l.Resume(t.Context(), newOwner(), rlock.WithWait(wait))
		require.ErrorIs(t, err, redlatch.ErrInvalid)
	}
	_, err := l.Resume(t.Context(), newOwner(), rlock.WithPolling(time.Second))
	require.ErrorIs(t, err, redlatch.ErrInvalid)
	require.Zero(t, tr.sent())
	hold, err := l.Lock(t.Context(), nil, rlock.WithWait(0), nil)
	require.NoError(t, err, "one attempt; nil options are ignored")
	require.NoError(t, hold.LetExpire())
}

// refused checks that every method rejects the name and sends nothing.
func refused(t *testing.T, l *rlock.Lock, sent func() int64) {
	t.Helper()
	ctx := t.Context()
	var errs []error
	keep := func(_ any, err error) { errs = append(errs, err) }
	lock := func(h *rlock.Hold, err error) { keep(h, err) }
	lock(l.Lock(ctx))
	lock(l.TryLock(ctx))
	lock(l.Resume(ctx, newOwner()))
	keep(nil, l.UnlockAs(ctx, newOwner()))
	forced, err := l.ForceUnlock(ctx)
	keep(forced, err)
	isLocked, err := l.IsLocked(ctx)
	keep(isLocked, err)
	count, err := l.HoldCount(ctx, codec.Owner{})
	keep(count, err)
	left, err := l.TTL(ctx)
	keep(left, err)
	keep(nil, l.Do(ctx, func(context.Context) error { return nil }))
	require.Len(t, errs, 9)
	for _, err := range errs {
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		var le *redlatch.LockError
		require.ErrorAs(t, err, &le)
		require.Equal(t, l.Name(), le.Name)
	}
	require.Zero(t, sent())
}

func TestInvalidNamesRejectedWithoutRequest(t *testing.T) {
	t.Parallel()
	tr := &counter{}
	client := over(t, tr)
	for _, name := range []string{"", "\xff", "ab\xc3", strings.Repeat("x", 300) + "\x80"} {
		refused(t, rlock.New(client, name), tr.sent)
	}
	for _, mapped := range []mapTo{"", "\xff"} {
		refused(t, rlock.New(over(t, tr, redlatch.WithNameMapper(mapped)), "job"), tr.sent)
	}
}

type mapTo string

func (m mapTo) Map(string) string   { return string(m) }
func (m mapTo) Unmap(string) string { return "" }

func TestNamesInvalidInClusterRejectedOnlyThere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a{b", "{}x", "a}b", "{", "x{}y{z}"} {
		cluster := &clusterCounter{}
		refused(t, rlock.New(over(t, cluster), name), cluster.sent)

		single := &counter{}
		hold := take(t, rlock.New(over(t, single), name))
		require.EqualValues(t, 1, single.sent())
		require.NoError(t, hold.LetExpire())
	}
	cluster := &clusterCounter{}
	for _, name := range []string{"job", "{tag}:job", "job:{tag}", "{a}{b"} {
		require.NoError(t, take(t, rlock.New(over(t, cluster), name)).LetExpire())
	}
	require.EqualValues(t, 4, cluster.sent())
}

// requireLossAt checks that the hold ends exactly at the given time.
func requireLossAt(ctx context.Context, t *testing.T, hold *rlock.Hold, at time.Time) {
	t.Helper()
	time.Sleep(time.Until(at) - time.Millisecond)
	require.NoError(t, hold.Err())
	require.NoError(t, ctx.Err())
	require.NoError(t, context.Cause(ctx))
	require.Equal(t, time.Millisecond, hold.Remaining())
	awaitClosed(t, ctx.Done(), time.Until(at)+time.Second, "the loss")
	require.Zero(t, time.Since(at), "the time of the loss")
	require.ErrorIs(t, hold.Err(), redlatch.ErrLost)
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
	require.Zero(t, hold.Remaining())
}

// The lease counts from the time at which the last acknowledged call was sent.
func TestU1U2HoldEndsBeforeLastAcknowledgedLeaseExpires(t *testing.T) {
	t.Parallel()
	const latency = 50 * time.Millisecond
	for name, cut := range map[string]func(*wire){
		"no answers":   func(w *wire) { w.hole.Store(true) },
		"errors":       func(w *wire) { w.srv.FailWith("LOADING Redis is loading the dataset in memory") },
		"disconnected": func(w *wire) { w.refuse.Store(true); w.srv.DropConnections() },
	} {
		for _, lease := range []time.Duration{3 * time.Second, 8 * time.Second, 30 * time.Second} {
			for _, tenths := range testlevel.Part([]int{5, 12, 19, 26}, 2, name) { // of a lease
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w, client := wired(t, latency)
						hold := take(t, rlock.New(client, "job"), rlock.WithWatchdog(lease))
						ctx := hold.Context(t.Context())
						time.Sleep(lease * time.Duration(tenths) / 10)
						synctest.Wait()
						require.NoError(t, hold.Err())
						cut(w)
						acknowledged := w.lastSent()
						margin := min(lease/10, time.Second)
						requireLossAt(ctx, t, hold, acknowledged.Add(lease-margin))
					})
				})
			}
		}
	}
}

func TestU1LeaseStartsWhenAcquireIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 800*time.Millisecond)
		began := time.Now()
		hold := take(t, rlock.New(client, "job"), rlock.WithLease(30*time.Second))
		took := time.Since(began)
		require.GreaterOrEqual(t, took, 800*time.Millisecond)
		require.Equal(t, 29*time.Second-took, hold.Remaining())
		require.GreaterOrEqual(t, ttl(t, w.srv, "job"), hold.Remaining()+time.Second)
		requireLossAt(hold.Context(t.Context()), t, hold, began.Add(29*time.Second))
	})
}

func TestU2HoldEndsBeforeServerLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 10*time.Millisecond)
		hold := take(t, rlock.New(client, "job"), rlock.WithWatchdog(2*time.Second))
		rival := await(t.Context(), rlock.New(fakeClient(t, w.srv), "job"))
		time.Sleep(5 * time.Second)
		w.hole.Store(true)
		awaitClosed(t, hold.Context(t.Context()).Done(), 2*time.Second, "the loss")
		lost := time.Now()
		rival.stillWaits(t)
		require.Positive(t, ttl(t, w.srv, "job"))
		next := rival.acquired(t, soon)
		require.GreaterOrEqual(t, time.Since(lost), 200*time.Millisecond)
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
		require.NoError(t, next.Unlock())
	})
}

func TestU7ShortOutageKeepsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, time.Millisecond)
		hold := take(t, rlock.New(client, "job"))
		for range 5 {
			time.Sleep(time.Minute)
			w.hole.Store(true)
			time.Sleep(10 * time.Second)
			w.hole.Store(false)
			time.Sleep(time.Minute)
			require.NoError(t, hold.Err())
			require.Greater(t, ttl(t, w.srv, "job"), 18*time.Second, "renewals have resumed")
		}
		require.NoError(t, hold.Unlock())
	})
}

func command(name string, args ...any) func(*testing.T, *redistest.MiniServer, *redlatch.Client) {
	return func(t *testing.T, srv *redistest.MiniServer, _ *redlatch.Client) {
		t.Helper()
		srv.Do(t, name, args...)
	}
}

// vanishings are ways in which a lock can disappear while it is held.
var vanishings = map[string]func(t *testing.T, srv *redistest.MiniServer, client *redlatch.Client){
	"deleted":     command("DEL", "job"),
	"flushed":     command("FLUSHALL"),
	"overwritten": command("SET", "job", "a cache's"),
	"renamed":     command("RENAME", "job", "job-away"),
	"taken":       command("EVAL", "redis.call('DEL', KEYS[1]); redis.call('HSET', KEYS[1], ARGV[1], 1)", 1, "job", foreignOwner),
	"forced": func(t *testing.T, _ *redistest.MiniServer, client *redlatch.Client) {
		t.Helper()
		forced, err := rlock.New(client, "job").ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, forced)
	},
}
