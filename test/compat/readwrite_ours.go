package compat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// rwOps are the operations of one role.
type rwOps struct{ acquire, free, force, renew *oracle.Operation }

var rwRoles = map[string]rwOps{
	"read":  {oracle.ReadAcquire, oracle.ReadFree, oracle.ReadForce, oracle.ReadRenew},
	"write": {oracle.WriteAcquire, oracle.WriteFree, oracle.WriteForce, oracle.WriteRenew},
}

// testOurReadWriteCalls holds that a Client sends, in both roles, the scripts, keys and arguments
// that the steps were taken with.
func (s scripts) testOurReadWriteCalls(t *testing.T) {
	client := open(t, s.on.server, redlatch.WithWatchdogTimeout(watchdogMS*time.Millisecond))
	for _, name := range lockNames(t) {
		for role, ops := range rwRoles {
			name := name + " " + role
			u := &rwUs{us{t, s.on, client, roleOf(client, name, role), oracle.Step{Names: []string{name}, Lease: 5000}}, ops}
			u.ownOwner()
			u.sharedOwner()
		}
	}
	for role, ops := range rwRoles {
		name := redistest.Key(t)
		hold, err := roleOf(client, name, role).Lock(t.Context())
		require.NoError(t, err)
		s.on.script(t, name)
		call, err := s.on.watch.Until(name)
		require.NoError(t, err)
		step := oracle.Step{Op: ops.renew, Names: []string{name}, Owner: hold.Owner().String(), Lease: watchdogMS}
		require.NoError(t, oracle.Ours{}.Identify(call, step))
		require.NoError(t, hold.Unlock())
	}
}

func roleOf(client *redlatch.Client, name, role string) *rlock.Lock {
	if role == "read" {
		return rreadwritelock.New(client, name).Read()
	}
	return rreadwritelock.New(client, name).Write()
}

// rwUs plays through one role of a read/write lock with a client of ours.
type rwUs struct {
	us
	ops rwOps
}

// ownOwner enters twice and leaves twice, and forces.
func (u *rwUs) ownOwner() {
	u.t.Helper()
	outer, err := u.lock.Lock(u.t.Context(), rlock.WithLease(5*time.Second))
	require.NoError(u.t, err)
	u.step.Owner = outer.Owner().String()
	u.sent(oracle.Ours{}, u.ops.acquire, 0)
	if u.ops.acquire == oracle.WriteAcquire {
		u.readsInside(outer)
	}
	u.step.Lease = 60000
	inner, err := u.lock.Lock(outer.Context(u.t.Context()), rlock.WithLease(time.Minute))
	require.NoError(u.t, err)
	u.sent(oracle.Ours{}, u.ops.acquire, 2)
	require.NoError(u.t, outer.Unlock())
	u.left(oracle.Ours{}, u.ops.free, 55000)
	require.NoError(u.t, inner.Unlock())
	u.step.Lease = 5000 // the first one's; it does not matter any more
	u.sent(oracle.Ours{}, u.ops.free, 0)
	_, err = u.lock.ForceUnlock(u.t.Context())
	require.NoError(u.t, err)
	u.sent(oracle.Ours{}, u.ops.force, 0)
}

// readsInside has a writer read.
func (u *rwUs) readsInside(outer *rlock.Hold) {
	u.t.Helper()
	reader, err := roleOf(u.client, u.step.Names[0], "read").Lock(outer.Context(u.t.Context()), rlock.WithLease(5*time.Second))
	require.NoError(u.t, err)
	u.sent(oracle.Ours{}, oracle.ReadAcquire, 1)
	require.NoError(u.t, reader.Unlock())
	u.sent(oracle.Ours{}, oracle.ReadFree, 0)
}

// left checks the release of one hold of two, whose lease is what the other is owed.
func (u *rwUs) left(ours oracle.Ours, op *oracle.Operation, about int64) {
	u.t.Helper()
	call := u.o.script(u.t, u.step.Names[0])
	u.step.Op, u.step.Target = op, 1
	var err error
	u.step.Lease, err = ours.Lease(call, u.step)
	require.NoError(u.t, err)
	require.InDelta(u.t, about, u.step.Lease, 5000, "what is left of the other hold's lease")
	require.NoError(u.t, ours.Identify(call, u.step))
}

// sharedOwner is an owner that others may use, too.
func (u *rwUs) sharedOwner() {
	u.t.Helper()
	shared := oracle.Ours{Shared: true}
	owner := codec.NewOwner(u.client.ID(), 1<<40)
	u.step.Owner, u.step.Lease = owner.String(), 5000
	hold, err := u.lock.Lock(u.t.Context(), rlock.WithLease(5*time.Second), rlock.WithOwner(owner))
	require.NoError(u.t, err)
	u.sent(shared, u.ops.acquire, 0)
	inner, err := u.lock.Lock(hold.Context(u.t.Context()))
	require.NoError(u.t, err)
	u.step.Lease = watchdogMS
	u.sent(shared, u.ops.acquire, 2)
	require.NoError(u.t, inner.Unlock())
	u.left(shared, u.ops.free, 5000)
	_, err = hold.HandOver()
	require.NoError(u.t, err)
	u.o.script(u.t, u.step.Names[0]) // its renewal
	require.NoError(u.t, u.lock.UnlockAs(u.t.Context(), owner))
	u.step.Lease = watchdogMS
	u.sent(shared, u.ops.free, 0)
}
