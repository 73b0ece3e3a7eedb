package compat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// testOurCalls holds that a Client sends the scripts, keys and arguments that
// the steps were taken with. Those of acquire, force release and the release of
// owners that travel are Redisson's.
func (s scripts) testOurCalls(t *testing.T) {
	client := open(t, s.on.server, redlatch.WithWatchdogTimeout(watchdogMS*time.Millisecond))
	for _, name := range lockNames(t) {
		u := &us{t, s.on, client, rlock.New(client, name), oracle.Step{Names: []string{name}, Lease: 5000}}
		u.ownOwner()
		u.sharedOwner()
	}
	name := redistest.Key(t)
	hold, err := rlock.New(client, name).Lock(t.Context())
	require.NoError(t, err)
	s.on.script(t, name)
	call, err := s.on.watch.Until(name)
	require.NoError(t, err)
	step := oracle.Step{Op: oracle.Renew, Names: []string{name}, Owner: hold.Owner().String(), Lease: watchdogMS}
	require.NoError(t, oracle.Ours{}.Identify(call, step))
	require.NoError(t, hold.Unlock())
}

// us plays through one lock with a client of ours.
type us struct {
	t      *testing.T
	o      observed
	client *redlatch.Client
	lock   *rlock.Lock
	step   oracle.Step // the owner's, with its lease
}

// sent checks the script that was sent last.
func (u *us) sent(ours oracle.Ours, op *oracle.Operation, target int64) {
	u.t.Helper()
	u.step.Op, u.step.Target = op, target
	require.NoError(u.t, ours.Identify(u.o.script(u.t, u.step.Names[0]), u.step))
}

// ownOwner enters twice and leaves twice, and forces.
func (u *us) ownOwner() {
	u.t.Helper()
	outer, err := u.lock.Lock(u.t.Context(), rlock.WithLease(5*time.Second))
	require.NoError(u.t, err)
	u.step.Owner = outer.Owner().String()
	u.sent(oracle.Ours{}, oracle.Acquire, 0)
	u.step.Lease = 60000
	inner, err := u.lock.Lock(outer.Context(u.t.Context()), rlock.WithLease(time.Minute))
	require.NoError(u.t, err)
	u.sent(oracle.Ours{}, oracle.Acquire, 2)

	require.NoError(u.t, outer.Unlock())
	call := u.o.script(u.t, u.step.Names[0])
	u.step.Op, u.step.Target = oracle.Free, 1
	u.step.Lease, err = oracle.Ours{}.Lease(call, u.step)
	require.NoError(u.t, err)
	require.InDelta(u.t, 55000, u.step.Lease, 5000, "what is left of the inner hold's minute")
	require.NoError(u.t, oracle.Ours{}.Identify(call, u.step))

	require.NoError(u.t, inner.Unlock())
	u.step.Lease = 5000 // the first one's; it does not matter any more
	u.sent(oracle.Ours{}, oracle.Free, 0)
	_, err = u.lock.ForceUnlock(u.t.Context())
	require.NoError(u.t, err)
	u.sent(oracle.Ours{}, oracle.Force, 0)
}

// sharedOwner is an owner that others may use, too.
func (u *us) sharedOwner() {
	u.t.Helper()
	shared := oracle.Ours{Shared: true}
	owner := codec.NewOwner(u.client.ID(), 1<<40)
	u.step.Owner, u.step.Lease = owner.String(), 5000
	hold, err := u.lock.Lock(u.t.Context(), rlock.WithLease(5*time.Second), rlock.WithOwner(owner))
	require.NoError(u.t, err)
	u.sent(shared, oracle.Acquire, 0)
	inner, err := u.lock.Lock(hold.Context(u.t.Context()))
	require.NoError(u.t, err)
	u.step.Lease = watchdogMS
	u.sent(shared, oracle.Acquire, 2)
	require.NoError(u.t, inner.Unlock())
	call := u.o.script(u.t, u.step.Names[0])
	u.step.Op, u.step.Target = oracle.Free, 1
	u.step.Lease, err = shared.Lease(call, u.step)
	require.NoError(u.t, err)
	require.InDelta(u.t, 5000, u.step.Lease, 5000, "what is left of the first hold's")
	require.NoError(u.t, shared.Identify(call, u.step))
	_, err = hold.HandOver()
	require.NoError(u.t, err)
	u.o.script(u.t, u.step.Names[0]) // its renewal
	require.NoError(u.t, u.lock.UnlockAs(u.t.Context(), owner))
	u.step.Lease = watchdogMS
	u.sent(shared, oracle.Free, 0)
}
