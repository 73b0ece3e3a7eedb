package compat

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// testOurObjectCalls holds that a Client sends, for semaphores and latches, the scripts, keys and
// arguments that the steps were taken with.
func (s scripts) testOurObjectCalls(t *testing.T) {
	client := open(t, s.on.server, redlatch.WithWatchdogTimeout(watchdogMS*time.Millisecond))
	for _, name := range lockNames(t) {
		u := &objectUs{t, s.on, name + " semaphore"}
		u.counter(rsemaphore.New(client, u.name))
		u.name = name + " permits"
		u.permits(rsemaphore.NewExpirable(client, u.name))
		u.name = name + " latch"
		u.latch(rlatch.New(client, u.name))
	}
	u := &objectUs{t, s.on, redistest.Key(t)}
	u.renewal(rsemaphore.NewExpirable(client, u.name))
}

// objectUs plays through a semaphore or latch with a client of ours.
type objectUs struct {
	t    *testing.T
	o    observed
	name string
}

// sent checks the script that a call of ours has sent.
func (u *objectUs) sent(s oracle.Step, err error) {
	u.t.Helper()
	require.NoError(u.t, err)
	u.check(u.o.script(u.t, u.name), s)
}

// timed are the operations whose first argument is the caller's clock.
var timed = map[*oracle.Operation]bool{
	oracle.PermitAcquire: true, oracle.PermitReleaseAll: true, oracle.PermitRenew: true, oracle.PermitsFree: true,
}

func (u *objectUs) check(call monitor.Call, s oracle.Step) {
	u.t.Helper()
	s.Names = []string{u.name}
	if timed[s.Op] {
		var err error
		s.Now, err = strconv.ParseInt(call.Argv[0], 10, 64)
		require.NoError(u.t, err)
		require.WithinDuration(u.t, time.Now(), time.UnixMilli(s.Now), atMost)
	}
	require.NoError(u.t, oracle.Ours{}.Identify(call, s))
}

func (u *objectUs) counter(sem *rsemaphore.Semaphore) {
	u.t.Helper()
	ctx := u.t.Context()
	_, err := sem.TrySet(ctx, 9, time.Minute)
	u.sent(oracle.Step{Op: oracle.SemaphoreSetFor, Permits: 9, Lease: 60000}, err)
	_, err = sem.TrySet(ctx, 9, 0)
	u.sent(oracle.Step{Op: oracle.SemaphoreSet, Permits: 9}, err)
	u.sent(oracle.Step{Op: oracle.SemaphoreAcquire, Permits: 2}, sem.Acquire(ctx, 2))
	u.sent(oracle.Step{Op: oracle.SemaphoreAcquire, Permits: 3}, sem.TryAcquire(ctx, 3))
	u.sent(oracle.Step{Op: oracle.SemaphoreRelease, Permits: 4}, sem.Release(ctx, 4))
	u.sent(oracle.Step{Op: oracle.SemaphoreAdd, Permits: -2}, sem.Add(ctx, -2))
	_, err = sem.Drain(ctx)
	u.sent(oracle.Step{Op: oracle.SemaphoreDrain}, err)
}

func (u *objectUs) permits(sem *rsemaphore.Expirable) {
	u.t.Helper()
	ctx := u.t.Context()
	_, err := sem.TrySetPermits(ctx, 5)
	u.sent(oracle.Step{Op: oracle.PermitsTrySet, Permits: 5}, err)
	hold, err := sem.Acquire(ctx, 2, rsemaphore.WithLease(time.Minute))
	require.NoError(u.t, err)
	u.sent(oracle.Step{Op: oracle.PermitAcquire, IDs: hold.IDs(), Lease: 60000}, nil)
	u.sent(oracle.Step{Op: oracle.PermitReleaseAll, IDs: hold.IDs()}, hold.Release())
	hold, err = sem.TryAcquire(ctx, 1, rsemaphore.WithLease(time.Minute))
	require.NoError(u.t, err)
	u.sent(oracle.Step{Op: oracle.PermitAcquire, IDs: hold.IDs(), Lease: 60000}, nil)
	_, err = sem.Release(ctx, hold.ID())
	u.sent(oracle.Step{Op: oracle.PermitReleaseAll, IDs: hold.IDs()}, err)
	_, err = sem.Permits(ctx)
	u.sent(oracle.Step{Op: oracle.PermitsFree}, err)
	u.sent(oracle.Step{Op: oracle.PermitsSet, Permits: 7}, sem.SetPermits(ctx, 7))
	u.sent(oracle.Step{Op: oracle.PermitsAdd, Permits: -3}, sem.AddPermits(ctx, -3))
}

// renewal has a hold of two permits renewed.
func (u *objectUs) renewal(sem *rsemaphore.Expirable) {
	u.t.Helper()
	_, err := sem.TrySetPermits(u.t.Context(), 2)
	require.NoError(u.t, err)
	hold, err := sem.Acquire(u.t.Context(), 2)
	require.NoError(u.t, err)
	u.o.about(u.t, u.name)
	call, err := u.o.watch.Until(u.name)
	require.NoError(u.t, err)
	u.check(call, oracle.Step{Op: oracle.PermitRenew, IDs: hold.IDs(), Lease: watchdogMS})
	require.NoError(u.t, hold.Release())
}

func (u *objectUs) latch(latch *rlatch.Latch) {
	u.t.Helper()
	ctx := u.t.Context()
	_, err := latch.TrySet(ctx, 3)
	u.sent(oracle.Step{Op: oracle.LatchSet, Permits: 3}, err)
	u.sent(oracle.Step{Op: oracle.LatchCountDown}, latch.CountDown(ctx))
	_, err = latch.Delete(ctx)
	u.sent(oracle.Step{Op: oracle.LatchDelete}, err)
}
