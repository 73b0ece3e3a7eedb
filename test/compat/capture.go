package compat

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

const fairWaitMS = 300000

type lockKind struct {
	java                           string
	enter, try, free, force, renew *oracle.Operation
	wait                           int64
	tried                          peer.Command
	ours                           func(client *redlatch.Client, name string) *rlock.Lock
}

func leased(ms int64) peer.Command { return peer.Command{"lease": ms} }

// lockKinds lists read and write locks separately. The script of a fair tryLock is captured without a lease.
var lockKinds = []lockKind{
	{"plain", oracle.Acquire, oracle.Acquire, oracle.Free, oracle.Force, oracle.Renew, 0, leased(9000), rlock.New},
	{"fair", oracle.FairAcquire, oracle.FairTry, oracle.FairFree, oracle.FairForce, oracle.Renew, fairWaitMS, nil,
		rfairlock.New},
	{
		"read", oracle.ReadAcquire, oracle.ReadAcquire, oracle.ReadFree, oracle.ReadForce, oracle.ReadRenew, 0, leased(9000),
		func(client *redlatch.Client, name string) *rlock.Lock { return rreadwritelock.New(client, name).Read() },
	},
	{
		"write", oracle.WriteAcquire, oracle.WriteAcquire, oracle.WriteFree, oracle.WriteForce, oracle.WriteRenew, 0, leased(9000),
		func(client *redlatch.Client, name string) *rlock.Lock {
			return rreadwritelock.New(client, name).Write()
		},
	},
}

func lockNames(t *testing.T) []string {
	t.Helper()
	l := redistest.Key(t)
	return []string{l, "{tag}" + l, "a{b" + l, l + "}", "{}" + l, "замок " + l}
}

func (c *compat) capture(t *testing.T, o observed) *oracle.Theirs {
	t.Helper()
	theirs := oracle.NewTheirs(c.release)
	j := connect(t, c.peer, o.server, peer.Command{"watchdog": watchdogMS})
	k := &captor{t: t, o: o, j: j, theirs: theirs}
	for _, kind := range lockKinds {
		k.kind, k.name = kind, redistest.Key(t)
		k.renewal()
	}
	for i, name := range lockNames(t) {
		for _, kind := range lockKinds {
			k.kind, k.name = kind, name+" "+kind.java
			k.threads()
			k.forced()
			k.futures()
			if kind.java == "fair" && i < 2 { // one name with braces, and one without
				k.waits()
			}
		}
		k.name = name + " semaphore"
		k.semaphore()
		k.name = name + " permits"
		k.permits()
		k.name = name + " latch"
		k.latch()
	}
	if c.release.HasFenced() {
		k.name = redistest.Key(t)
		k.tokens()
	}
	for _, kind := range oracle.KindsOf(c.release) {
		require.Empty(t, theirs.Missing(kind))
	}
	return theirs
}

type captor struct {
	t      *testing.T
	o      observed
	j      *java
	theirs *oracle.Theirs
	kind   lockKind
	name   string
}

func (k *captor) does(op string, fields peer.Command) {
	k.t.Helper()
	k.j.do(k.t, peer.Command{"op": op, "name": k.name, "kind": k.kind.java}.With(fields))
}

func (k *captor) is(call monitor.Call, s oracle.Step) {
	k.t.Helper()
	s.Names = []string{k.name}
	require.NoError(k.t, oracle.Identify(k.theirs.Release, call, s))
	require.NoError(k.t, k.theirs.Learn(s.Op, call))
}

func (k *captor) calls() []monitor.Call {
	k.t.Helper()
	return slices.DeleteFunc(k.o.scripts(k.t, k.name), k.theirs.Renews)
}

func (k *captor) sent(s oracle.Step) {
	k.t.Helper()
	calls := k.calls()
	require.Len(k.t, calls, 1)
	k.is(calls[0], s)
}

// next skips renewals, which may follow any acquire, because Redisson renews all its locks in one batch.
func (k *captor) next() monitor.Call {
	k.t.Helper()
	call, err := k.o.watch.Until(k.name)
	require.NoError(k.t, err)
	return call
}

func (k *captor) renewal() {
	k.t.Helper()
	t1 := peer.Command{"thread": "t1"}
	s := oracle.Step{Op: k.kind.enter, Owner: k.j.owner(k.t, "t1"), Lease: watchdogMS, Wait: k.kind.wait}
	k.does("lock", t1)
	k.is(k.next(), s)
	s.Op = k.kind.renew
	k.is(k.next(), s)
	k.does("unlock", t1)
}

// threads gives the second thread a separate lock object, because the first object remembers its lease.
func (k *captor) threads() {
	k.t.Helper()
	const lease = 7000
	t1, t2 := peer.Command{"thread": "t1"}, peer.Command{"thread": "t2", "object": "other"}
	s := oracle.Step{Op: k.kind.enter, Owner: k.j.owner(k.t, "t1"), Lease: lease, Wait: k.kind.wait}
	k.does("lock", t1.With(leased(lease)))
	k.sent(s)
	try := s
	try.Op, try.Lease = k.kind.try, watchdogMS
	if k.kind.tried != nil {
		try.Lease = 9000
	}
	k.does("tryLock", t1.With(k.kind.tried).With(peer.Command{"object": "again"}))
	k.sent(try)
	try.Owner = k.j.owner(k.t, "t2")
	k.does("tryLock", t2.With(k.kind.tried))
	k.sent(try)

	s.Op = k.kind.free
	for _, freed := range []bool{false, true, true} {
		k.leaves(t1)
		k.sent(s)
		s.Lease = k.theirs.Release.LeaseAfterUnlock(s.Lease, watchdogMS, freed)
	}
	k.leaves(t2)
	k.calls()
}

func (k *captor) leaves(thread peer.Command) {
	k.t.Helper()
	_, err := k.j.begin(peer.Command{"op": "unlock", "name": k.name, "kind": k.kind.java}.With(thread)).Wait(atMost)
	require.NotErrorIs(k.t, err, peer.ErrTimeout)
}

func (k *captor) forced() {
	k.t.Helper()
	k.does("lock", peer.Command{"thread": "t1"}.With(leased(5000)))
	k.sent(oracle.Step{Op: k.kind.enter, Owner: k.j.owner(k.t, "t1"), Lease: 5000, Wait: k.kind.wait})
	for range 2 {
		k.does("forceUnlock", peer.Command{"thread": "t2"})
		k.sent(oracle.Step{Op: k.kind.force})
	}
}

func (k *captor) futures() {
	k.t.Helper()
	for _, n := range []int64{0, -5, 1 << 62} {
		s := oracle.Step{Op: k.kind.enter, Owner: fmt.Sprintf("%s:%d", k.j.id, n), Lease: 8000, Wait: k.kind.wait}
		fields := peer.Command{"threadId": n, "object": strconv.FormatInt(n, 10)}
		k.does("lockAsync", fields.With(leased(8000)))
		k.sent(s)
		s.Op = k.kind.free
		k.does("unlockAsync", fields)
		k.sent(s)
		s.Op, s.Lease = k.kind.try, watchdogMS
		fields["object"] = fmt.Sprint("fresh", n)
		k.does("tryLockAsync", fields)
		k.sent(s)
		k.does("forceUnlockAsync", fields)
		k.sent(oracle.Step{Op: k.kind.force})
	}
}

func (k *captor) waits() {
	k.t.Helper()
	const wait = 500
	k.does("lock", peer.Command{"thread": "t1"}.With(leased(60000)))
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

func (k *captor) gaveUp(s oracle.Step, wait int64) {
	k.t.Helper()
	calls := k.calls()
	last := len(calls) - 1
	require.GreaterOrEqual(k.t, last, 1)
	s.Op = oracle.FairAcquire
	for _, call := range calls[:last] {
		k.is(call, s)
	}
	s.Op, s.Wait = oracle.FairGiveUp, wait
	k.is(calls[last], s)
}

func (k *captor) tokens() {
	k.t.Helper()
	t1 := peer.Command{"thread": "t1"}
	k.kind = lockKinds[0]
	k.kind.java = "fenced"
	s := oracle.Step{Op: oracle.AcquireToken, Owner: k.j.owner(k.t, "t1"), Lease: watchdogMS}
	for range 2 {
		k.does("lockAndGetToken", t1)
		k.sent(s)
	}
	k.does("forceUnlock", t1)
	k.sent(oracle.Step{Op: oracle.Force})

	k.name += " leased"
	s.Lease = 5000
	for range 2 {
		s.Op = oracle.AcquireCounted
		k.does("lock", t1.With(leased(s.Lease)))
		k.sent(s)
		s.Op = oracle.Free
		k.does("unlock", t1)
		k.sent(s)
	}
}

func object(kind, method string, args ...any) peer.Command {
	return peer.Command{"op": "call", "kind": kind, "method": method, "args": slices.Concat([]any{}, args)}
}

const msUnit = "ms"

func (k *captor) calling(s oracle.Step, kind, method string, args ...any) {
	k.t.Helper()
	k.j.do(k.t, object(kind, method, args...).With(peer.Command{"name": k.name, "thread": "main"}))
	k.sent(s)
}

func (k *captor) semaphore() {
	k.t.Helper()
	r := k.theirs.Release
	of := func(op *oracle.Operation, permits int64, method string, args ...any) {
		k.t.Helper()
		k.calling(oracle.Step{Op: op, Permits: permits, Lease: 5000}, "semaphore", method, args...)
	}
	of(oracle.SemaphoreAcquire, 1, "tryAcquire")
	of(oracle.SemaphoreSet, 10, "trySetPermits", 10)
	of(oracle.SemaphoreAcquire, 4, "tryAcquire", 4)
	of(oracle.SemaphoreAcquire, 1, "acquire")
	of(oracle.SemaphoreAcquire, 2, "acquire", 2)
	of(oracle.SemaphoreAcquire, 2, "tryAcquire", 2, 50, msUnit)
	of(oracle.SemaphoreAcquire, 1, "acquireAsync", 1)
	of(oracle.SemaphoreRelease, 1, "release")
	of(oracle.SemaphoreRelease, 3, "releaseAsync", 3)
	of(oracle.SemaphoreAdd, -20, "addPermits", -20)
	of(oracle.SemaphoreDrain, 0, "drainPermits")
	if r.HasReleaseIfExists() {
		of(oracle.SemaphoreReleaseIf, 2, "releaseIfExists", 2)
	}
	if r.HasSemaphoreTTL() {
		of(oracle.SemaphoreSetFor, 7, "trySetPermits", 7, peer.Command{"ms": 5000})
	}
}

func (k *captor) latch() {
	k.t.Helper()
	of := func(op *oracle.Operation, count int64, method string, args ...any) {
		k.t.Helper()
		k.calling(oracle.Step{Op: op, Permits: count}, "latch", method, args...)
	}
	of(oracle.LatchSet, 2, "trySetCount", 2)
	of(oracle.LatchCountDown, 0, "countDown")
	of(oracle.LatchCountDown, 0, "countDownAsync")
	of(oracle.LatchSet, 3, "trySetCountAsync", 3)
	of(oracle.LatchDelete, 0, "delete")
}

func (k *captor) permits() {
	k.t.Helper()
	r := k.theirs.Release
	of := func(s oracle.Step, method string, args ...any) {
		k.t.Helper()
		k.calling(s, "permits", method, args...)
	}
	of(oracle.Step{Op: oracle.PermitsTrySet, Permits: 4}, "trySetPermits", 4)
	forEver := k.takes(-1, "acquire")
	short := k.takes(60000, "acquire", 60000, msUnit)
	k.takes(80000, "tryAcquire", 100, 80000, msUnit)
	k.takes(-1, "tryAcquire")
	of(oracle.Step{Op: oracle.PermitRenew, IDs: short, Lease: 100000}, "updateLeaseTime", short[0], 100000, msUnit)
	of(oracle.Step{Op: oracle.PermitsFree}, "availablePermits")
	of(oracle.Step{Op: oracle.PermitRelease, IDs: short}, "tryRelease", short[0])
	of(oracle.Step{Op: oracle.PermitRelease, IDs: forEver}, "release", forEver[0])
	of(oracle.Step{Op: oracle.PermitsAdd, Permits: 2}, "addPermits", 2)
	if r.CountsPermits() {
		of(oracle.Step{Op: oracle.PermitsAll}, "getPermits")
		of(oracle.Step{Op: oracle.PermitsOut}, "acquiredPermits")
		of(oracle.Step{Op: oracle.PermitsSet, Permits: 9}, "setPermits", 9)
	}
	if r.TellsPermitLease() {
		one := k.takes(120000, "acquire", 120000, msUnit)
		of(oracle.Step{Op: oracle.PermitLeft, IDs: one}, "getLeaseTime", one[0])
	}
	if r.TakesManyPermits() {
		two := k.takes(140000, "acquire", 2, 140000, msUnit)
		of(oracle.Step{Op: oracle.PermitReleaseAll, IDs: two}, "release", two)
	}
}

// takes acquires permits, and returns the IDs that Java generated.
func (k *captor) takes(lease int64, method string, args ...any) []string {
	k.t.Helper()
	reply := k.j.do(k.t, object("permits", method, args...).With(peer.Command{"name": k.name, "thread": "main"}))
	var ids []string
	if reply.Into(&ids) != nil {
		ids = []string{""}
		require.NoError(k.t, reply.Into(&ids[0]))
	}
	for _, id := range ids {
		raw, err := hex.DecodeString(id)
		require.NoError(k.t, err)
		require.Len(k.t, raw, 16)
		require.Equal(k.t, strings.ToLower(id), id)
	}
	s := oracle.Step{Op: oracle.PermitAcquire, IDs: ids, Lease: lease}
	if lease < 0 {
		s.Op = oracle.PermitAcquireForEver
	}
	k.sent(s)
	return ids
}
