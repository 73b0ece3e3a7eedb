package compat

import (
	"fmt"

	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// reading and writing are the fields of a Java command about either side of a read/write lock.
func reading(fields peer.Command) peer.Command { return peer.Command{"kind": "read"}.With(fields) }
func writing(fields peer.Command) peer.Command { return peer.Command{"kind": "write"}.With(fields) }

// rwCaptor plays through one read/write lock.
type rwCaptor struct{ *captor }

// readers: a thread enters twice, another once, and the first leaves three times, once too
// often.
func (k rwCaptor) readers() {
	k.t.Helper()
	t1, t2 := reading(peer.Command{"thread": "t1"}), reading(peer.Command{"thread": "t2"})
	owner, second := k.j.owner(k.t, "t1"), k.j.owner(k.t, "t2")
	k.does("lock", t1.With(peer.Command{"lease": 5000}))
	k.learn(oracle.ReadAcquire, owner, 5000)
	k.does("tryLock", t1.With(peer.Command{"lease": 7000}))
	k.learn(oracle.ReadAcquire, owner, 7000)
	k.does("tryLock", t2.With(peer.Command{"lease": 7000}))
	k.learn(oracle.ReadAcquire, second, 7000)
	k.does("tryLock", writing(peer.Command{"thread": "t2", "lease": 7000}))
	k.learn(oracle.WriteAcquire, second, 7000)
	for range 2 {
		k.does("unlock", t1)
		k.learn(oracle.ReadFree, owner, 0)
	}
	k.does("unlock", t2)
	k.learn(oracle.ReadFree, second, 0)
	// Early releases do not throw.
	_, _ = k.j.begin(t1.With(peer.Command{"op": "unlock", "name": k.name})).Wait(atMost)
	k.learn(oracle.ReadFree, owner, 0)
}

// writers: a thread enters twice and reads, another is refused, and the first leaves.
func (k rwCaptor) writers() {
	k.t.Helper()
	const lease = 7000
	t1 := writing(peer.Command{"thread": "t1"})
	r, owner := k.theirs.Release, k.j.owner(k.t, "t1")
	k.does("lock", t1.With(peer.Command{"lease": 5000}))
	k.learn(oracle.WriteAcquire, owner, 5000)
	k.does("tryLock", t1.With(peer.Command{"lease": lease}))
	k.learn(oracle.WriteAcquire, owner, lease)
	k.does("lock", reading(peer.Command{"thread": "t1", "lease": lease}))
	k.learn(oracle.ReadAcquire, owner, lease)
	k.does("tryLock", reading(peer.Command{"thread": "t2", "lease": lease}))
	k.learn(oracle.ReadAcquire, k.j.owner(k.t, "t2"), lease)
	k.does("unlock", reading(peer.Command{"thread": "t1"}))
	k.learn(oracle.ReadFree, owner, 0)
	k.does("unlock", t1)
	k.learn(oracle.WriteFree, owner, lease)
	next := r.LeaseAfterUnlock(lease, watchdogMS, false)
	k.does("unlock", t1)
	k.learn(oracle.WriteFree, owner, next)
}

func (k rwCaptor) force() {
	k.t.Helper()
	for kind, ops := range map[string][2]*oracle.Operation{
		"read":  {oracle.ReadAcquire, oracle.ReadForce},
		"write": {oracle.WriteAcquire, oracle.WriteForce},
	} {
		at := peer.Command{"kind": kind, "thread": "t1"}
		k.does("lock", at.With(peer.Command{"lease": 5000}))
		k.learn(ops[0], k.j.owner(k.t, "t1"), 5000)
		for range 2 {
			k.does("forceUnlock", at.With(peer.Command{"thread": "t2"}))
			k.learn(ops[1], "", 0)
		}
	}
}

// futures: with the asynchronous calls the number of an owner is the caller's choice.
func (k rwCaptor) futures() {
	k.t.Helper()
	for _, n := range []int64{0, -5, 1 << 62} {
		owner := fmt.Sprintf("%s:%d", k.j.id, n)
		for kind, ops := range map[string][2]*oracle.Operation{
			"read":  {oracle.ReadAcquire, oracle.ReadFree},
			"write": {oracle.WriteAcquire, oracle.WriteFree},
		} {
			fields := peer.Command{"kind": kind, "threadId": n, "object": fmt.Sprint(n)}
			k.does("lockAsync", fields.With(peer.Command{"lease": 8000}))
			k.learn(ops[0], owner, 8000)
			k.does("unlockAsync", fields)
			k.learn(ops[1], owner, 8000)
		}
	}
}

// renewals: a reader and a writer, each of its own lock.
func (k rwCaptor) renewals() {
	k.t.Helper()
	owner, name := k.j.owner(k.t, "t1"), k.name
	for kind, ops := range map[string][2]*oracle.Operation{
		"read":  {oracle.ReadAcquire, oracle.ReadRenew},
		"write": {oracle.WriteAcquire, oracle.WriteRenew},
	} {
		k.name = name + " " + kind
		at := peer.Command{"kind": kind, "thread": "t1"}
		k.does("lock", at)
		k.check(k.next(), ops[0], owner, watchdogMS)
		k.check(k.next(), ops[1], owner, watchdogMS)
		k.does("unlock", at)
		k.o.about(k.t, k.name)
	}
}
