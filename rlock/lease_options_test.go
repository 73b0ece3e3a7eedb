package rlock_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// counter is a transport that counts calls, and sends nothing.
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

func TestBadLeasesAreRefusedAndNothingIsSent(t *testing.T) {
	t.Parallel()
	tr := &counter{}
	l := rlock.New(over(t, tr), "job")
	for name, opts := range map[string][]rlock.Option{
		"none":              {rlock.WithLease(0)},
		"negative":          {rlock.WithLease(-time.Second)},
		"microseconds":      {rlock.WithLease(999 * time.Microsecond)},
		"centuries":         {rlock.WithLease(limits.Max + time.Millisecond)},
		"the longest":       {rlock.WithLease(1<<63 - 1)},
		"no watchdog":       {rlock.WithWatchdog(0)},
		"short watchdog":    {rlock.WithWatchdog(time.Microsecond)},
		"milliseconds":      {rlock.WithWatchdog(30 * time.Millisecond)},
		"eternal watchdog":  {rlock.WithWatchdog(limits.Max + 1)},
		"fixed and renewed": {rlock.WithLease(time.Second), rlock.WithWatchdog(time.Second)},
		"fixed and maximum": {rlock.WithLease(time.Minute), rlock.WithMaxHold(time.Minute)},
		"no maximum":        {rlock.WithMaxHold(0)},
		"negative maximum":  {rlock.WithMaxHold(-time.Second)},
		"short maximum":     {rlock.WithMaxHold(time.Microsecond)},
		"eternal maximum":   {rlock.WithMaxHold(limits.Max + 1)},
		"no owner":          {rlock.WithOwner(redlatch.Owner{})},
	} {
		_, err := l.Lock(t.Context(), opts...)
		require.ErrorIs(t, err, redlatch.ErrInvalid, name)
		_, err = l.TryLock(t.Context(), opts...)
		require.ErrorIs(t, err, redlatch.ErrInvalid, name)
		requireOnly(t, err, "trylock", "job", redlatch.ErrInvalid)
		ran := false
		err = l.Do(t.Context(), func(context.Context) error { ran = true; return nil }, opts...)
		require.ErrorIs(t, err, redlatch.ErrInvalid, name)
		require.False(t, ran)
	}
	require.Zero(t, tr.sent())
}

// A port of tryLock(10, 60, SECONDS) may forget the unit.
func TestWaitsThatAreNoneAreRefusedAndNothingIsSent(t *testing.T) {
	t.Parallel()
	tr := &counter{}
	l := rlock.New(over(t, tr), "job")
	for _, wait := range []time.Duration{10, 999 * time.Microsecond, -1, -time.Hour} {
		_, err := l.Lock(t.Context(), rlock.WithWait(wait))
		require.ErrorIs(t, err, redlatch.ErrInvalid, wait)
		require.ErrorContains(t, err, "write a unit", wait)
	}
	for _, wait := range []time.Duration{0, time.Second} {
		_, err := l.TryLock(t.Context(), rlock.WithWait(wait))
		require.ErrorIs(t, err, redlatch.ErrInvalid)
	}
	require.Zero(t, tr.sent())
	hold, err := l.Lock(t.Context(), rlock.WithWait(0))
	require.NoError(t, err, "one attempt")
	require.NoError(t, hold.LetExpire())
}

func TestNilOptionsAreIgnored(t *testing.T) {
	t.Parallel()
	_, client := onShared(t)
	require.NoError(t, take(t, rlock.New(client, redistest.Key(t)), nil, rlock.WithLease(time.Minute), nil).Unlock())
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
	isHeld, err := l.IsHeldBy(ctx, redlatch.Owner{})
	keep(isHeld, err)
	count, err := l.HoldCount(ctx, redlatch.Owner{})
	keep(count, err)
	left, err := l.TTL(ctx)
	keep(left, err)
	keep(nil, l.Do(ctx, func(context.Context) error { return nil }))
	require.Len(t, errs, 10)
	for _, err := range errs {
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		var le *redlatch.LockError
		require.ErrorAs(t, err, &le)
		require.Equal(t, l.Name(), le.Name)
	}
	require.Zero(t, sent())
}

func TestNamesThatNoLockCanHaveAreRefusedAndNothingIsSent(t *testing.T) {
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

func TestNamesThatDoNotWorkInAClusterAreRefusedThereAlone(t *testing.T) {
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
