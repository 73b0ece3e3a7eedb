package luasrc

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

func readerOf(n int) string { return fmt.Sprint(ownerA[:len(ownerA)-1], 100+n) }

const readerLease = 30000

// longestReader is the reader with the longest lease. There are more others than a release reads.
const (
	longestReader = 22
	longestLease  = 50000
)

func leaseOf(n int) int64 {
	if n == longestReader {
		return longestLease
	}
	return readerLease
}

// readBy is a lock held by readers by number, each with its key unless it is dead.
func readBy(l string, ttl int64, dead bool, numbers ...int) map[string]any {
	fields, keys := []string{"mode", "read"}, map[string]any{}
	for _, n := range numbers {
		fields = append(fields, readerOf(n), "1")
		if !dead || n == longestReader {
			keys = also(keys, holdOf(l, readerOf(n), 1, leaseOf(n)))
		}
	}
	return also(lock(l, ttl, fields...), keys)
}

func TestReaderReleaseChecksFewReaders(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := newQuietStage(t, srv)
	l := redistest.Key(t)
	for n := range 500 {
		_, err := s.run(enter(l, readerOf(n), int64(readerLease+10*n)))
		require.NoError(t, err)
	}
	srv.Do(t, "CONFIG", "RESETSTAT")
	_, err := s.run(leave(l, readerOf(0), 0, readerLease))
	require.NoError(t, err)
	stats, err := redis.String(srv.Do(t, "INFO", "commandstats"), nil)
	require.NoError(t, err)
	require.Regexp(t, `cmdstat_pttl:calls=[1-4],`, stats)
}

// hesitates makes each command of a script take three milliseconds, so that the server's clock advances.
const hesitates = `local server = redis
local function now()
    local t = server.call('TIME')
    return t[1] * 1000 + t[2] / 1000
end
local redis = {pcall = server.pcall, call = function(...)
    local began = now()
    for i = 1, 1000 do
        if now() - began > 3 then
            break
        end
    end
    return server.call(...)
end}
`

// A release takes a lock that outlives the ended hold for another reader's (see outlived).
func TestLockTTLNeverExceedsLongestHold(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		s := newQuietStage(t, target)
		s.instead = map[*transport.Script]*transport.Script{}
		for _, script := range []*transport.Script{
			ReadAcquire, ReadReenter, ReadRenew, ReadRelease, ReadReleaseShared, WriteRelease, WriteReleaseShared,
		} {
			s.instead[script] = transport.NewScript("slow", hesitates+script.Text())
		}
		l := redistest.Key(t)
		longest := func(owner string, k, millis int64, calls ...vector) {
			t.Helper()
			for _, call := range calls {
				_, err := s.run(call)
				require.NoError(t, err, call)
			}
			last := calls[len(calls)-1]
			holds, err1 := redis.Int64(s.conn.Do("PTTL", protocol.HoldKey(l, owner, k)))
			lasts, err2 := redis.Int64(s.conn.Do("PTTL", l))
			require.NoError(t, errors.Join(err1, err2))
			require.LessOrEqual(t, lasts, holds, last)
			require.Greater(t, lasts, millis-500000, last)
		}
		longest(ownerA, 1, 2000000, enter(l, ownerA, 2000000))
		longest(ownerA, 1, 3000000, enterAgain(l, ownerA, 3000000, 1))
		longest(ownerA, 1, 4000000, reads(lease{l, ownerA, 4000000}))
		longest(ownerA, 2, 5000000, enter(l, ownerA, 5000000))
		longest(ownerA, 1, 4000000, enter(l, ownerB, 3000000), leave(l, ownerA, 1, 4000000))
		longest(ownerB, 1, 3000000, leave(l, ownerA, 0, 4000000))
		longest(ownerB, 1, 3000000, command("PERSIST", l), enter(l, ownerA, 2000000))
		longest(ownerB, 1, 3000000, command("PERSIST", l), reads(lease{l, ownerA, 2000000}))
		longest(ownerB, 2, 5000000, enter(l, ownerB, 5000000), leaveShared(l, ownerA, 4000000))
		// Renewals by almost the remaining time.
		for d := range 10 {
			longest(ownerB, 2, 5000000, command("PEXPIRE", protocol.HoldKey(l, ownerB, 1), 4000000),
				command("PEXPIRE", protocol.HoldKey(l, ownerB, 2), 5000000), command("PEXPIRE", l, 4000000),
				reads(lease{l, ownerB, int64(5000000 - 3*d)}))
		}
		longest(ownerB, 1, 5000000, command("DEL", protocol.LatchKey(l, requestID)), leaveShared(l, ownerB, 4000000))
		for _, release := range []vector{leave(l, writerA, 0, 6000000), leaveShared(l, writerA, 6000000)} {
			longest(ownerA, 1, 3000000, command("DEL", l), command("DEL", protocol.LatchKey(l, requestID)),
				enter(l, writerA, 6000000), enter(l, ownerA, 3000000), release)
		}
	})
}

var readWriteReaders = []scenario{
	// A release reads few of many readers; the lock's TTL is as if it read all.
	{"many readers", func(l string) (all []vector) {
		var present []int
		enter := func(n int) {
			present = append(present, n)
			all = append(all, enter(l, readerOf(n), leaseOf(n)).gives(nil, "", readBy(l, leaseOf(n), false, present...)))
		}
		remain := func(ttl int64, without int) map[string]any {
			present = slices.DeleteFunc(present, func(p int) bool { return p == without })
			return readBy(l, ttl, false, present...)
		}
		for n := range longestReader + 1 {
			enter(n)
		}
		// The longest hold is another's, and then the ended one.
		latch := protocol.LatchKey(l, requestID)
		shared := remain(longestLease, 0)
		all = append(all,
			leaveShared(l, readerOf(0), readerLease).gives(int64(0), "", also(shared, latched(latch, "0"))).then("DEL", latch),
			leave(l, readerOf(1), 0, readerLease).gives(int64(1), "", remain(longestLease, 1)),
			leave(l, readerOf(longestReader), 0, readerLease).gives(int64(1), "", remain(readerLease, longestReader)))
		enter(longestReader)
		var keys []any
		for _, n := range present[:len(present)-1] {
			keys = append(keys, protocol.HoldKey(l, readerOf(n), 1))
		}
		dead := slices.Clone(present)
		return append(all,
			command("DEL", keys...).gives(int64(len(keys)), "", readBy(l, longestLease, true, dead...)).then("PEXPIRE", l, 60000),
			// The lock outlives all holds, and no other reader is alive.
			leave(l, readerOf(longestReader), 0, readerLease).gives(int64(1), "", nothing, protocol.ReadWriteChannel(l)+" 0"),
		)
	}},
}
