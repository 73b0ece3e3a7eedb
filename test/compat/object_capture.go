package compat

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// object are the fields of a Java command that calls a method of what is no lock.
func object(kind, method string, args ...any) peer.Command {
	return peer.Command{"op": "call", "kind": kind, "method": method, "args": slices.Concat([]any{}, args)}
}

// msUnit stands for Java's unit of the number before it.
const msUnit = "ms"

// objectCaptor has a live Redisson use semaphores and latches, and takes the scripts that it
// sends.
type objectCaptor struct{ *captor }

// calls calls a method and takes its script. Its reply is Java's.
func (k objectCaptor) calls(s oracle.Step, kind, method string, args ...any) peer.Reply {
	k.t.Helper()
	reply := k.j.do(k.t, object(kind, method, args...).With(peer.Command{"name": k.name, "thread": "main"}))
	k.sent(s)
	return reply
}

func (k objectCaptor) sent(s oracle.Step) {
	k.t.Helper()
	s.Names = []string{k.name}
	call := k.o.script(k.t, k.name)
	require.NoError(k.t, oracle.Identify(k.theirs.Release, call, s))
	require.NoError(k.t, k.theirs.Learn(s.Op, call))
}

func (k objectCaptor) semaphore() {
	k.t.Helper()
	r := k.theirs.Release
	of := func(op *oracle.Operation, permits, lease int64, method string, args ...any) {
		k.t.Helper()
		k.calls(oracle.Step{Op: op, Permits: permits, Lease: lease}, "semaphore", method, args...)
	}
	of(oracle.SemaphoreAcquire, 1, 0, "tryAcquire")
	of(oracle.SemaphoreSet, 10, 0, "trySetPermits", 10)
	of(oracle.SemaphoreAcquire, 4, 0, "tryAcquire", 4)
	of(oracle.SemaphoreAcquire, 1, 0, "acquire")
	of(oracle.SemaphoreAcquire, 2, 0, "acquire", 2)
	of(oracle.SemaphoreAcquire, 2, 0, "tryAcquire", 2, 50, msUnit)
	of(oracle.SemaphoreAcquire, 1, 0, "acquireAsync", 1)
	of(oracle.SemaphoreRelease, 1, 0, "release")
	of(oracle.SemaphoreRelease, 3, 0, "releaseAsync", 3)
	of(oracle.SemaphoreAdd, -20, 0, "addPermits", -20)
	of(oracle.SemaphoreDrain, 0, 0, "drainPermits")
	if r.HasReleaseIfExists() {
		of(oracle.SemaphoreReleaseIf, 2, 0, "releaseIfExists", 2)
	}
	if r.HasSemaphoreTTL() {
		of(oracle.SemaphoreSetFor, 7, 5000, "trySetPermits", 7, peer.Command{"ms": 5000})
	}
}

func (k objectCaptor) latch() {
	k.t.Helper()
	of := func(op *oracle.Operation, count int64, method string, args ...any) {
		k.t.Helper()
		k.calls(oracle.Step{Op: op, Permits: count}, "latch", method, args...)
	}
	of(oracle.LatchSet, 2, "trySetCount", 2)
	of(oracle.LatchCountDown, 0, "countDown")
	of(oracle.LatchCountDown, 0, "countDownAsync")
	of(oracle.LatchSet, 3, "trySetCountAsync", 3)
	of(oracle.LatchDelete, 0, "delete")
}

func (k objectCaptor) permits() {
	k.t.Helper()
	r := k.theirs.Release
	of := func(s oracle.Step, method string, args ...any) {
		k.t.Helper()
		k.calls(s, "permits", method, args...)
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

// takes acquires permits, whose ids are Java's choice: the call sends what it returns.
func (k objectCaptor) takes(lease int64, method string, args ...any) []string {
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
