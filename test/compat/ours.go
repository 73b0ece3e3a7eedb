package compat

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

func (s scripts) testOurCalls(t *testing.T) {
	client := open(t, s.on.server, redlatch.WithWatchdogTimeout(watchdogMS*time.Millisecond))
	for _, kind := range lockKinds {
		t.Run(kind.java, func(t *testing.T) {
			for _, name := range lockNames(t) {
				u := &us{t: t, o: s.on, began: time.Now().UnixMilli(), client: client, kind: kind, lock: kind.ours(client, name)}
				u.step = oracle.Step{Names: []string{name}, Wait: kind.wait}
				u.ownOwner()
				u.sharedOwner()
				if kind.java == "fair" {
					u.waiter()
				}
			}
			name := redistest.Key(t)
			hold := must(kind.ours(client, name).Lock(t.Context()))(t)
			s.on.about(t, name)
			call := must(s.on.watch.Until(name))(t)
			step := oracle.Step{Op: kind.renew, Names: []string{name}, Owner: hold.Owner().String(), Lease: watchdogMS}
			require.NoError(t, oracle.Ours{}.Identify(call, step))
			require.NoError(t, hold.Unlock())
		})
	}
	t.Run("semaphores and latches", func(t *testing.T) {
		for _, name := range lockNames(t) {
			u := &us{t: t, o: s.on, began: time.Now().UnixMilli(), client: client, step: oracle.Step{Names: []string{name + " semaphore"}}}
			u.counter()
			u.step.Names = []string{name + " permits"}
			u.permits()
			u.step.Names = []string{name + " latch"}
			u.latch()
		}
	})
}

type us struct {
	t      *testing.T
	o      observed
	began  int64
	client *redlatch.Client
	kind   lockKind
	lock   *rlock.Lock
	step   oracle.Step
}

func (u *us) take(ctx context.Context, opts ...rlock.Option) *rlock.Hold {
	u.t.Helper()
	return must(u.lock.Lock(ctx, opts...))(u.t)
}

func (u *us) sent(ours oracle.Ours, op *oracle.Operation, target int64) {
	u.t.Helper()
	u.step.Op, u.step.Target = op, target
	require.NoError(u.t, ours.Identify(u.o.script(u.t, u.step.Names[0]), u.step))
}

// parted checks that the release of one of two holds restores the lease of the other.
func (u *us) parted(ours oracle.Ours, about time.Duration) {
	u.t.Helper()
	call := u.o.script(u.t, u.step.Names[0])
	u.step.Op, u.step.Target = u.kind.free, 1
	var err error
	u.step.Lease, err = ours.Lease(call, u.step)
	require.NoError(u.t, err)
	require.InDelta(u.t, about.Milliseconds(), u.step.Lease, 5000, "remaining lease of the other hold")
	require.NoError(u.t, ours.Identify(call, u.step))
}

func (u *us) ownOwner() {
	u.t.Helper()
	ours := oracle.Ours{}
	opts := []rlock.Option{rlock.WithLease(15 * time.Second)}
	if u.kind.wait > 0 {
		opts = append(opts, rlock.WithWait(7*time.Second))
		u.step.Wait = 7000
	}
	u.step.Lease = 15000
	outer := u.take(u.t.Context(), opts...)
	u.step.Owner = outer.Owner().String()
	u.sent(ours, u.kind.enter, 0)
	if u.kind.java == "write" {
		reader := lockKinds[2]
		inside := must(reader.ours(u.client, u.step.Names[0]).Lock(outer.Context(u.t.Context()), opts...))(u.t)
		u.sent(ours, reader.enter, 1)
		require.NoError(u.t, inside.Unlock())
		u.sent(ours, reader.free, 0)
	}
	inner := u.take(outer.Context(u.t.Context()), rlock.WithLease(time.Minute))
	u.step.Lease = 60000
	u.sent(ours, u.kind.enter, 2)
	require.NoError(u.t, outer.Unlock())
	u.parted(ours, 55*time.Second)
	require.NoError(u.t, inner.Unlock())
	u.step.Lease = 15000 // not relevant here
	u.sent(ours, u.kind.free, 0)

	hold := must(u.lock.TryLock(u.t.Context(), rlock.WithLease(18*time.Second)))(u.t)
	u.step.Owner, u.step.Wait, u.step.Lease = hold.Owner().String(), u.kind.wait, 18000
	u.sent(ours, u.kind.try, 0)
	_, err := u.lock.ForceUnlock(u.t.Context())
	require.NoError(u.t, err)
	u.sent(ours, u.kind.force, 0)
	require.ErrorIs(u.t, hold.Unlock(), redlatch.ErrLost)
	u.sent(ours, u.kind.free, 0)
}

func (u *us) sharedOwner() {
	u.t.Helper()
	ours := oracle.Ours{Shared: true}
	owner := codec.NewOwner(u.client.ID(), 1<<40)
	u.step.Owner, u.step.Lease = owner.String(), 15000
	hold := u.take(u.t.Context(), rlock.WithLease(15*time.Second), rlock.WithOwner(owner))
	u.sent(ours, u.kind.enter, 0)
	inner := u.take(hold.Context(u.t.Context()))
	u.step.Lease = watchdogMS
	u.sent(ours, u.kind.enter, 2)
	require.NoError(u.t, inner.Unlock())
	u.parted(ours, 10*time.Second)
	_, err := hold.HandOver()
	require.NoError(u.t, err)
	u.o.script(u.t, u.step.Names[0])
	require.NoError(u.t, u.lock.UnlockAs(u.t.Context(), owner))
	u.step.Lease = watchdogMS
	u.sent(ours, u.kind.free, 0)
}

func (u *us) waiter() {
	u.t.Helper()
	name := u.step.Names[0]
	hold := u.take(u.t.Context(), rlock.WithLease(time.Minute))
	u.o.script(u.t, name)
	ctx, cancel := context.WithCancel(u.t.Context())
	defer cancel()
	outcome := later(func() error {
		_, err := u.lock.Lock(ctx, rlock.WithLease(18*time.Second), rlock.WithWait(time.Minute))
		return err
	})
	u.step.Target, u.step.Lease, u.step.Wait = 0, 18000, 60000
	for _, op := range ops(oracle.FairAcquire, oracle.FairAcquire, oracle.FairGiveUp) {
		if u.step.Op = op; op == oracle.FairGiveUp {
			cancel()
			require.ErrorIs(u.t, <-outcome, context.Canceled)
		}
		call, err := u.o.watch.Until(name)
		require.NoError(u.t, err)
		u.step.Owner = call.Argv[1]
		require.NoError(u.t, oracle.Ours{}.Identify(call, u.step))
	}
	require.NoError(u.t, hold.Unlock())
	u.o.about(u.t, name)
}

// timed contains the operations whose first argument is the time on the caller's clock.
var timed = map[*oracle.Operation]bool{
	oracle.PermitAcquire: true, oracle.PermitReleaseAll: true, oracle.PermitRenew: true, oracle.PermitsFree: true,
}

func (u *us) did(s oracle.Step, err error) {
	u.t.Helper()
	require.NoError(u.t, err)
	u.check(u.o.script(u.t, u.step.Names[0]), s)
}

func (u *us) check(call monitor.Call, s oracle.Step) {
	u.t.Helper()
	s.Names = u.step.Names
	if timed[s.Op] {
		var err error
		s.Now, err = strconv.ParseInt(call.Argv[0], 10, 64)
		require.NoError(u.t, err)
		require.GreaterOrEqual(u.t, s.Now, u.began)
		require.LessOrEqual(u.t, s.Now, time.Now().UnixMilli())
	}
	require.NoError(u.t, oracle.Ours{}.Identify(call, s))
}

func (u *us) counter() {
	u.t.Helper()
	ctx, sem := u.t.Context(), rsemaphore.New(u.client, u.step.Names[0])
	_, err := sem.TrySetPermits(ctx, 9, time.Minute)
	u.did(oracle.Step{Op: oracle.SemaphoreSetFor, Permits: 9, Lease: 60000}, err)
	_, err = sem.TrySetPermits(ctx, 9, 0)
	u.did(oracle.Step{Op: oracle.SemaphoreSet, Permits: 9}, err)
	u.did(oracle.Step{Op: oracle.SemaphoreAcquire, Permits: 2}, sem.Acquire(ctx, 2))
	u.did(oracle.Step{Op: oracle.SemaphoreAcquire, Permits: 3}, sem.TryAcquire(ctx, 3))
	u.did(oracle.Step{Op: oracle.SemaphoreRelease, Permits: 4}, sem.Release(ctx, 4))
	_, err = sem.ReleaseIfExists(ctx, 1)
	u.did(oracle.Step{Op: oracle.SemaphoreReleaseIf, Permits: 1}, err)
	u.did(oracle.Step{Op: oracle.SemaphoreAdd, Permits: -2}, sem.AddPermits(ctx, -2))
	_, err = sem.Drain(ctx)
	u.did(oracle.Step{Op: oracle.SemaphoreDrain}, err)
}

func (u *us) permits() {
	u.t.Helper()
	ctx, sem := u.t.Context(), rsemaphore.NewExpirable(u.client, u.step.Names[0])
	_, err := sem.TrySetPermits(ctx, 5)
	u.did(oracle.Step{Op: oracle.PermitsTrySet, Permits: 5}, err)
	hold, err := sem.Acquire(ctx, 2, rlock.WithLease(time.Minute))
	require.NoError(u.t, err)
	u.did(oracle.Step{Op: oracle.PermitAcquire, IDs: hold.IDs(), Lease: 60000}, nil)
	u.did(oracle.Step{Op: oracle.PermitRenew, IDs: hold.IDs(), Lease: 90000}, sem.Extend(ctx, 90*time.Second, hold.IDs()...))
	u.did(oracle.Step{Op: oracle.PermitReleaseAll, IDs: hold.IDs()}, hold.Release())
	hold, err = sem.TryAcquire(ctx, 2)
	require.NoError(u.t, err)
	u.did(oracle.Step{Op: oracle.PermitAcquire, IDs: hold.IDs(), Lease: watchdogMS}, nil)
	if u.step.Names[0][0] == '{' {
		call, err := u.o.watch.Until(u.step.Names[0])
		require.NoError(u.t, err)
		u.check(call, oracle.Step{Op: oracle.PermitRenew, IDs: hold.IDs(), Lease: watchdogMS})
	}
	require.NoError(u.t, hold.Release())
	u.o.about(u.t, u.step.Names[0])
	_, err = sem.Available(ctx)
	u.did(oracle.Step{Op: oracle.PermitsFree}, err)
	u.did(oracle.Step{Op: oracle.PermitsSet, Permits: 7}, sem.SetPermits(ctx, 7))
	u.did(oracle.Step{Op: oracle.PermitsAdd, Permits: -3}, sem.AddPermits(ctx, -3))
}

func (u *us) latch() {
	u.t.Helper()
	ctx, latch := u.t.Context(), rlatch.New(u.client, u.step.Names[0])
	_, err := latch.TrySetCount(ctx, 3)
	u.did(oracle.Step{Op: oracle.LatchSet, Permits: 3}, err)
	u.did(oracle.Step{Op: oracle.LatchCountDown}, latch.CountDown(ctx))
	_, err = latch.Delete(ctx)
	u.did(oracle.Step{Op: oracle.LatchDelete}, err)
}
