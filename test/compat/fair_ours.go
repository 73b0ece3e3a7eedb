package compat

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// fairUs plays through one fair lock with a client of ours.
type fairUs struct {
	t      *testing.T
	o      observed
	client *redlatch.Client
	lock   *rlock.Lock
	step   oracle.Step // the owner's, with its lease and its wait
}

// testOurFairCalls is testOurCalls for the fair lock.
func (s scripts) testOurFairCalls(t *testing.T) {
	client := open(t, s.on.server, redlatch.WithWatchdogTimeout(watchdogMS*time.Millisecond))
	for _, name := range lockNames(t) {
		u := &fairUs{t, s.on, client, rfairlock.New(client, name), oracle.Step{Names: []string{name}, Wait: fairWaitMS}}
		u.ownOwner()
		u.sharedOwner()
		u.waiter()
	}
	name := redistest.Key(t)
	hold, err := rfairlock.New(client, name).Lock(t.Context())
	require.NoError(t, err)
	s.on.script(t, name)
	call, err := s.on.watch.Until(name)
	require.NoError(t, err)
	step := oracle.Step{Op: oracle.Renew, Names: []string{name}, Owner: hold.Owner().String(), Lease: watchdogMS}
	require.NoError(t, oracle.Ours{}.Identify(call, step))
	require.NoError(t, hold.Unlock())
}

// sent checks the script that was sent last.
func (u *fairUs) sent(ours oracle.Ours, op *oracle.Operation, target int64) {
	u.t.Helper()
	u.step.Op, u.step.Target = op, target
	require.NoError(u.t, ours.Identify(u.o.script(u.t, u.step.Names[0]), u.step))
}

// part checks the script that gives one hold of two back, with a lease of its own
// choice.
func (u *fairUs) part(ours oracle.Ours, lease time.Duration) {
	u.t.Helper()
	call := u.o.script(u.t, u.step.Names[0])
	u.step.Op, u.step.Target = oracle.FairFree, 1
	var err error
	u.step.Lease, err = ours.Lease(call, u.step)
	require.NoError(u.t, err)
	require.InDelta(u.t, lease.Milliseconds(), u.step.Lease, 5000, "what is left of the longest hold's")
	require.NoError(u.t, ours.Identify(call, u.step))
}

// ownOwner enters twice and leaves twice, tries, and forces.
func (u *fairUs) ownOwner() {
	u.t.Helper()
	u.step.Lease = 5000
	outer, err := u.lock.Lock(u.t.Context(), rlock.WithLease(5*time.Second), rlock.WithWait(7*time.Second))
	require.NoError(u.t, err)
	u.step.Owner, u.step.Wait = outer.Owner().String(), 7000
	u.sent(oracle.Ours{}, oracle.FairAcquire, 0)
	u.step.Lease = 60000
	inner, err := u.lock.Lock(outer.Context(u.t.Context()), rlock.WithLease(time.Minute))
	require.NoError(u.t, err)
	u.sent(oracle.Ours{}, oracle.FairAcquire, 2)
	require.NoError(u.t, outer.Unlock())
	u.part(oracle.Ours{}, 55*time.Second)
	require.NoError(u.t, inner.Unlock())
	u.step.Lease = 5000 // the first one's; it does not matter any more
	u.sent(oracle.Ours{}, oracle.FairFree, 0)

	hold, err := u.lock.TryLock(u.t.Context(), rlock.WithLease(8*time.Second))
	require.NoError(u.t, err)
	u.step.Owner, u.step.Wait, u.step.Lease = hold.Owner().String(), fairWaitMS, 8000
	u.sent(oracle.Ours{}, oracle.FairTry, 0)
	_, err = u.lock.ForceUnlock(u.t.Context())
	require.NoError(u.t, err)
	u.sent(oracle.Ours{}, oracle.FairForce, 0)
	require.ErrorIs(u.t, hold.Unlock(), redlatch.ErrLost)
	u.sent(oracle.Ours{}, oracle.FairFree, 0)
}

// sharedOwner is an owner that others may use, too.
func (u *fairUs) sharedOwner() {
	u.t.Helper()
	shared := oracle.Ours{Shared: true}
	owner := codec.NewOwner(u.client.ID(), 1<<40)
	u.step.Owner, u.step.Wait, u.step.Lease = owner.String(), fairWaitMS, 5000
	hold, err := u.lock.Lock(u.t.Context(), rlock.WithLease(5*time.Second), rlock.WithOwner(owner))
	require.NoError(u.t, err)
	u.sent(shared, oracle.FairAcquire, 0)
	inner, err := u.lock.Lock(hold.Context(u.t.Context()))
	require.NoError(u.t, err)
	u.step.Lease = watchdogMS
	u.sent(shared, oracle.FairAcquire, 2)
	require.NoError(u.t, inner.Unlock())
	u.part(shared, 5*time.Second)
	_, err = hold.HandOver()
	require.NoError(u.t, err)
	u.o.script(u.t, u.step.Names[0]) // its renewal
	require.NoError(u.t, u.lock.UnlockAs(u.t.Context(), owner))
	u.step.Lease = watchdogMS
	u.sent(shared, oracle.FairFree, 0)
}

// waiter waits in vain: it acquires when it comes and when it has subscribed, and
// gives up, always with its wait.
func (u *fairUs) waiter() {
	u.t.Helper()
	name := u.step.Names[0]
	hold, err := u.lock.Lock(u.t.Context(), rlock.WithLease(time.Minute))
	require.NoError(u.t, err)
	u.o.script(u.t, name)
	ctx, cancel := context.WithCancel(u.t.Context())
	outcome := make(chan error, 1)
	go func() {
		_, err := u.lock.Lock(ctx, rlock.WithLease(8*time.Second), rlock.WithWait(time.Minute))
		outcome <- err
	}()
	ours := oracle.Ours{}
	for range 2 {
		call, err := u.o.watch.Until(name)
		require.NoError(u.t, err)
		u.step.Op, u.step.Target, u.step.Owner = oracle.FairAcquire, 0, call.Argv[1]
		u.step.Lease, u.step.Wait = 8000, 60000
		require.NoError(u.t, ours.Identify(call, u.step))
	}
	cancel()
	require.ErrorIs(u.t, <-outcome, context.Canceled)
	call, err := u.o.watch.Until(name)
	require.NoError(u.t, err)
	u.step.Op = oracle.FairGiveUp
	require.NoError(u.t, ours.Identify(call, u.step))
	require.NoError(u.t, hold.Unlock())
	u.o.about(u.t, name)
}
