package compat

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// fairWaitMS is the fair wait timeout of a Redisson client that sets none.
const fairWaitMS = 300000

// fairCaptor plays through one fair lock.
type fairCaptor struct{ *captor }

func (k fairCaptor) does(op string, fields peer.Command) {
	k.t.Helper()
	k.captor.does(op, peer.Command{"kind": "fair"}.With(fields))
}

// is checks a call against a step and takes its script.
func (k fairCaptor) is(call monitor.Call, s oracle.Step) {
	k.t.Helper()
	s.Names = []string{k.name}
	require.NoError(k.t, oracle.Identify(k.theirs.Release, call, s))
	require.NoError(k.t, k.theirs.Learn(s.Op, call))
}

// calls returns the fair lock's scripts that were sent since the last time. All have
// its queue among their keys; renewals, which come at any time, have not.
func (k fairCaptor) calls() []monitor.Call {
	k.t.Helper()
	return slices.DeleteFunc(k.o.scripts(k.t, k.name), func(call monitor.Call) bool {
		return !slices.Contains(call.Keys, codec.QueueKey(k.name))
	})
}

// sent takes the one script of the last command.
func (k fairCaptor) sent(s oracle.Step) {
	k.t.Helper()
	calls := k.calls()
	require.Len(k.t, calls, 1)
	k.is(calls[0], s)
}

// gaveUp takes the scripts of a wait that is over: attempts, and giving up, in
// which the wait may be another.
func (k fairCaptor) gaveUp(s oracle.Step, wait int64) {
	k.t.Helper()
	calls := k.calls()
	last := len(calls) - 1
	require.GreaterOrEqual(k.t, last, 1)
	for _, call := range calls[:last] {
		s.Op = oracle.FairAcquire
		k.is(call, s)
	}
	s.Op, s.Wait = oracle.FairGiveUp, wait
	k.is(calls[last], s)
}

// threads: a thread enters twice, another does not get in, and the first leaves three
// times. The third time changes nothing.
func (k fairCaptor) threads() {
	k.t.Helper()
	const lease = 7000
	t1 := peer.Command{"thread": "t1"}
	r := k.theirs.Release
	entry := oracle.Step{Op: oracle.FairAcquire, Owner: k.j.owner(k.t, "t1"), Lease: lease, Wait: fairWaitMS}
	k.does("lock", t1.With(peer.Command{"lease": lease}))
	k.sent(entry)
	k.does("tryLock", t1.With(peer.Command{"object": "again"}))
	again := entry
	again.Op, again.Lease = oracle.FairTry, watchdogMS
	k.sent(again)

	k.does("tryLock", peer.Command{"thread": "t2", "object": "other"})
	again.Owner = k.j.owner(k.t, "t2")
	k.sent(again)

	unlock := oracle.Step{Op: oracle.FairFree, Owner: entry.Owner, Lease: lease}
	for _, freed := range []bool{false, true, true} {
		k.does("unlock", t1)
		k.sent(unlock)
		unlock.Lease = r.LeaseAfterUnlock(unlock.Lease, watchdogMS, freed)
	}
}

func (k fairCaptor) force() {
	k.t.Helper()
	k.does("lock", peer.Command{"thread": "t1", "lease": 5000})
	k.sent(oracle.Step{Op: oracle.FairAcquire, Owner: k.j.owner(k.t, "t1"), Lease: 5000, Wait: fairWaitMS})
	for range 2 {
		k.does("forceUnlock", peer.Command{"thread": "t2"})
		k.sent(oracle.Step{Op: oracle.FairForce})
	}
}

// waits: others wait and give up. The wait is long enough for a slow machine to
// subscribe in. An asynchronous call gives up with another wait than it was queued
// with.
func (k fairCaptor) waits() {
	k.t.Helper()
	const wait = 500
	k.does("lock", peer.Command{"thread": "t1", "lease": 60000})
	k.calls()
	s := oracle.Step{Owner: k.j.owner(k.t, "t2"), Lease: 8000, Wait: wait}
	k.does("tryLock", peer.Command{"thread": "t2", "wait": wait, "lease": 8000})
	k.gaveUp(s, wait)
	s.Owner = k.j.id + ":77"
	k.does("tryLockAsync", peer.Command{"threadId": 77, "wait": wait, "lease": 8000})
	k.gaveUp(s, fairWaitMS)
	k.does("forceUnlock", nil)
	k.calls()
}

// futures: with the asynchronous calls the number of an owner is the caller's
// choice.
func (k fairCaptor) futures() {
	k.t.Helper()
	s := oracle.Step{Owner: k.j.id + ":0", Lease: 8000, Wait: fairWaitMS}
	for _, n := range []int64{0, -5, 1 << 62} {
		s.Op, s.Owner = oracle.FairAcquire, fmt.Sprintf("%s:%d", k.j.id, n)
		fields := peer.Command{"threadId": n, "object": strconv.FormatInt(n, 10)}
		k.does("lockAsync", fields.With(peer.Command{"lease": 8000}))
		k.sent(s)
		s.Op = oracle.FairFree
		k.does("unlockAsync", fields)
		k.sent(s)
		s.Op = oracle.FairTry
		k.does("tryLockAsync", fields.With(peer.Command{"object": "fresh" + strconv.FormatInt(n, 10)}))
		s.Lease = watchdogMS
		k.sent(s)
		s.Op, s.Lease = oracle.FairForce, 8000
		k.does("forceUnlockAsync", fields)
		k.sent(s)
	}
}

// renewal is the plain lock's script.
func (k fairCaptor) renewal() {
	k.t.Helper()
	k.does("lock", peer.Command{"thread": "t1"})
	owner := k.j.owner(k.t, "t1")
	k.is(k.next(), oracle.Step{Op: oracle.FairAcquire, Owner: owner, Lease: watchdogMS, Wait: fairWaitMS})
	k.check(k.next(), oracle.Renew, owner, watchdogMS)
	k.does("unlock", peer.Command{"thread": "t1"})
}
