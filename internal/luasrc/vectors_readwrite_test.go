package luasrc

import (
	"slices"
	"testing"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
)

// readWriteScenarios are the vectors of docs/protocol.md for read/write locks, with the differences.
var readWriteScenarios = slices.Concat([]scenario{
	{"RW1 readers, whose owners travel", func(l string) []vector {
		latch, channel := protocol.LatchKey(l, requestID), protocol.ReadWriteChannel(l)
		a1, a2, b := holdOf(l, ownerA, 1, 30000), holdOf(l, ownerA, 2, 10000), holdOf(l, ownerB, 1, 50000)
		three := also(lock(l, 50000, "mode", "read", ownerA, "2", ownerB, "1"), a1, a2, b)
		two := also(lock(l, 50000, "mode", "read", ownerA, "1", ownerB, "1"), a1, b)
		last := also(lock(l, 30000, "mode", "read", ownerA, "1"), a1)
		return []vector{
			enter(l, ownerA, 30000).gives(nil, "", also(lock(l, 30000, "mode", "read", ownerA, "1"), a1)),
			enter(l, ownerA, 10000).gives(nil, "", also(lock(l, 30000, "mode", "read", ownerA, "2"), a1, a2)),
			enter(l, ownerB, 50000).gives(nil, "", three),
			enter(l, writerA, 30000).gives(about(50000), "", three),
			leaveShared(l, ownerA, 10000).gives(int64(0), "", also(two, latched(latch, "0"))),
			leaveShared(l, ownerA, 10000).gives(int64(0), "", also(two, latched(latch, "0"))).then("DEL", latch),
			leaveShared(l, ownerB, 10000).gives(int64(0), "", also(last, latched(latch, "0"))).then("DEL", latch),
			leaveShared(l, ownerB, 10000).gives(nil, "", last),
			leaveShared(l, ownerA, 10000).gives(int64(1), "", latched(latch, "1"), channel+" 0").then("DEL", latch),
			// Redisson returns nil, and 1 for a retry.
			leaveShared(l, ownerA, 10000).gives(int64(2), "", latched(latch, "2"), channel+" 0"),
			leaveShared(l, ownerA, 10000).gives(int64(2), "", latched(latch, "2")).then("DEL", latch),
			// The longest hold has the deleted key. The ended hold is unknown, so the others get its TTL.
			enter(l, ownerA, 10000).gives(nil, "", also(lock(l, 10000, "mode", "read", ownerA, "1"), holdOf(l, ownerA, 1, 10000))),
			enter(l, ownerA, 90000).gives(nil, "", also(lock(l, 90000, "mode", "read", ownerA, "2"), holdOf(l, ownerA, 1, 10000), holdOf(l, ownerA, 2, 90000))),
			leaveShared(l, ownerA, 60000).gives(int64(0), "", also(
				lock(l, 90000, "mode", "read", ownerA, "1"), holdOf(l, ownerA, 1, 90000), latched(latch, "0"))),
		}
	}},
	// With targets. A release returns whether the owner still reads, Redisson's whether anyone does.
	{"RW1 readers, of one process", func(l string) []vector {
		channel := protocol.ReadWriteChannel(l)
		a1, b := holdOf(l, ownerA, 1, 30000), holdOf(l, ownerB, 1, 50000)
		both := also(lock(l, 50000, "mode", "read", ownerA, "1", ownerB, "1"), a1, b)
		last := also(lock(l, 30000, "mode", "read", ownerA, "1"), a1)
		return []vector{
			leave(l, ownerA, 0, 30000).gives(nil, "", nothing),
			enter(l, ownerA, 30000).gives(nil, "", last),
			enter(l, ownerB, 50000).gives(nil, "", both),
			leave(l, ownerA, 1, 10000).gives(int64(0), "", both),
			leave(l, ownerC, 0, 30000).gives(nil, "", both),
			leave(l, ownerB, 0, 30000).gives(int64(1), "", last),
			leave(l, ownerB, 0, 30000).gives(nil, "", last),
			leave(l, ownerA, 0, 30000).gives(int64(1), "", nothing, channel+" 0"),
			leave(l, ownerA, 0, 30000).gives(nil, "", nothing),
		}
	}},
	{"RW2 writer and downgrade, of an owner that travels", func(l string) []vector {
		latch, channel := protocol.LatchKey(l, requestID), protocol.ReadWriteChannel(l)
		a, b := holdOf(l, ownerA, 1, 30000), holdOf(l, ownerB, 1, 5000)
		written := lock(l, 10000, "mode", "write", writerA, "2")
		twice := also(lock(l, 30000, "mode", "write", writerA, "2", ownerA, "1"), a)
		once := also(lock(l, 30000, "mode", "write", writerA, "1", ownerA, "1"), a)
		alone := also(lock(l, 30000, "mode", "read", ownerA, "1"), a)
		both := also(lock(l, 30000, "mode", "read", ownerA, "1", ownerB, "1"), a, b)
		return []vector{
			enter(l, writerA, 10000).gives(nil, "", lock(l, 10000, "mode", "write", writerA, "1")),
			// Redisson's adds the leases up.
			enter(l, writerA, 10000).gives(nil, "", written),
			enter(l, ownerB, 5000).gives([]any{about(10000), writerA}, "", written),
			enter(l, writerB, 5000).gives([]any{about(10000), writerA}, "", written),
			enter(l, ownerA, 30000).gives(nil, "", twice),
			leaveShared(l, writerB, 30000).gives(nil, "", twice),
			leaveShared(l, writerA, 20000).gives(int64(0), "", also(once, latched(latch, "0"))).then("DEL", latch),
			// Redisson's sends nothing: waiting readers sleep on.
			leaveShared(l, writerA, 30000).gives(int64(1), "", also(alone, latched(latch, "1")), channel+" 1"),
			leaveShared(l, writerA, 30000).gives(int64(1), "", also(alone, latched(latch, "1"))).then("DEL", latch),
			enter(l, ownerB, 5000).gives(nil, "", both),
			leaveShared(l, writerA, 30000).gives(nil, "", both),
			forceWrite(l).gives(int64(0), "", both),
			forceRead(l).gives(int64(1), "", also(a, b), channel+" 0"),
			forceRead(l).gives(int64(0), "", also(a, b)).then("DEL", protocol.HoldKey(l, ownerA, 1), protocol.HoldKey(l, ownerB, 1)),
			enter(l, writerB, 10000).gives(nil, "", lock(l, 10000, "mode", "write", writerB, "1")),
			forceRead(l).gives(int64(0), "", lock(l, 10000, "mode", "write", writerB, "1")),
			leaveShared(l, writerB, 30000).gives(int64(1), "", latched(latch, "1"), channel+" 1").then("DEL", latch),
			leaveShared(l, writerB, 30000).gives(int64(2), "", latched(latch, "2"), channel+" 1").then("DEL", latch),
			enter(l, writerB, 10000).gives(nil, "", lock(l, 10000, "mode", "write", writerB, "1")),
			forceWrite(l).gives(int64(1), "", nothing, channel+" 1"),
		}
	}},
	{"RW2 writer and downgrade, of one process", func(l string) []vector {
		channel := protocol.ReadWriteChannel(l)
		a := holdOf(l, ownerA, 1, 45000)
		written := lock(l, 10000, "mode", "write", writerA, "1")
		return []vector{
			leave(l, writerA, 0, 30000).gives(nil, "", nothing),
			enter(l, writerA, 10000).gives(nil, "", written),
			enterAgain(l, writerB, 30000, 2).gives(nil, "", written),
			// Redisson's adds the leases up.
			enterAgain(l, writerA, 20000, 2).gives(int64(1), "", lock(l, 20000, "mode", "write", writerA, "2")),
			leave(l, writerB, 0, 30000).gives(nil, "", lock(l, 20000, "mode", "write", writerA, "2")),
			leave(l, writerA, 2, 60000).gives(int64(0), "", lock(l, 20000, "mode", "write", writerA, "2")),
			leave(l, writerA, 1, 10000).gives(int64(0), "", written),
			enterAgain(l, ownerA, 45000, 1).gives(int64(1), "", also(lock(l, 45000, "mode", "write", writerA, "1", ownerA, "1"), a)),
			enterAgain(l, writerA, 20000, 2).gives(int64(1), "", also(lock(l, 45000, "mode", "write", writerA, "2", ownerA, "1"), a)),
			// A read lasts longer than the writer's remaining holds.
			leave(l, writerA, 1, 10000).gives(int64(0), "", also(lock(l, 45000, "mode", "write", writerA, "1", ownerA, "1"), a)),
			leave(l, writerA, 0, 10000).gives(int64(1), "", also(lock(l, 45000, "mode", "read", ownerA, "1"), a), channel+" 1"),
			leave(l, writerA, 0, 10000).gives(nil, "", also(lock(l, 45000, "mode", "read", ownerA, "1"), a)),
			leave(l, ownerA, 0, 30000).gives(int64(1), "", nothing, channel+" 0"),
			enter(l, writerB, 10000).gives(nil, "", lock(l, 10000, "mode", "write", writerB, "1")),
			leave(l, writerB, 0, 30000).gives(int64(1), "", nothing, channel+" 1"),
		}
	}},
	// Redisson's cuts the lease to that of the reads (D2).
	{"RW3 reads of a writer do not cut its lease", func(l string) []vector {
		channel := protocol.ReadWriteChannel(l)
		r1, r2 := holdOf(l, ownerA, 1, 12000), holdOf(l, ownerA, 2, 12000)
		return []vector{
			enter(l, writerA, 60000).gives(nil, "", lock(l, 60000, "mode", "write", writerA, "1")),
			enterAgain(l, ownerA, 12000, 1).gives(int64(1), "", also(lock(l, 60000, "mode", "write", writerA, "1", ownerA, "1"), r1)),
			enterAgain(l, ownerA, 12000, 2).gives(int64(1), "", also(lock(l, 60000, "mode", "write", writerA, "1", ownerA, "2"), r1, r2)),
			leave(l, ownerA, 1, 12000).gives(int64(0), "", also(lock(l, 60000, "mode", "write", writerA, "1", ownerA, "1"), r1)),
			leave(l, ownerA, 0, 12000).gives(int64(1), "", lock(l, 60000, "mode", "write", writerA, "1")),
			// The lock had less left than a read, as after Java's renewal.
			enterAgain(l, ownerA, 90000, 2).gives(int64(1), "", also(lock(l, 90000, "mode", "write", writerA, "1", ownerA, "2"),
				holdOf(l, ownerA, 1, 90000), holdOf(l, ownerA, 2, 90000))),
			command("PEXPIRE", l, 20000).gives(int64(1), "", also(lock(l, 20000, "mode", "write", writerA, "1", ownerA, "2"),
				holdOf(l, ownerA, 1, 90000), holdOf(l, ownerA, 2, 90000))),
			leave(l, ownerA, 1, 45000).gives(int64(0), "", also(lock(l, 45000, "mode", "write", writerA, "1", ownerA, "1"),
				holdOf(l, ownerA, 1, 45000))),
			leave(l, ownerA, 0, 45000).gives(int64(1), "", lock(l, 45000, "mode", "write", writerA, "1")),
			leave(l, writerA, 0, 45000).gives(int64(1), "", nothing, channel+" 1"),
		}
	}},
	{"RW4 renewal", func(l string) []vector {
		start := also(lock(l, 60000, "mode", "read", ownerA, "2", ownerB, "1", ownerC, "1"),
			holdOf(l, ownerA, 1, 10000), holdOf(l, ownerA, 2, 10000), holdOf(l, ownerC, 1, 10000), holdOf(l, ownerB, 1, 60000))
		renewed := also(lock(l, 60000, "mode", "read", ownerA, "2", ownerB, "1", ownerC, "1"),
			holdOf(l, ownerA, 1, 30000), holdOf(l, ownerA, 2, 30000), holdOf(l, ownerC, 1, 30000), holdOf(l, ownerB, 1, 60000))
		text := l + ":text"
		return []vector{
			reads(lease{l, ownerA, 30000}).gives(answers(0), "", nothing),
			enter(l, ownerA, 10000).gives(nil, "", also(lock(l, 10000, "mode", "read", ownerA, "1"), holdOf(l, ownerA, 1, 10000))),
			enter(l, ownerA, 10000).gives(nil, "", also(lock(l, 10000, "mode", "read", ownerA, "2"), holdOf(l, ownerA, 1, 10000), holdOf(l, ownerA, 2, 10000))),
			enter(l, ownerC, 10000).gives(nil, "", also(lock(l, 10000, "mode", "read", ownerA, "2", ownerC, "1"),
				holdOf(l, ownerA, 1, 10000), holdOf(l, ownerA, 2, 10000), holdOf(l, ownerC, 1, 10000))),
			enter(l, ownerB, 60000).gives(nil, "", start),
			// Redisson's shortens the lock to its lease (D4).
			reads(lease{l, ownerA, 30000}, lease{text, ownerA, 30000}, lease{l, ownerC, 30000}).gives(answers(1, 0, 1), "", renewed),
			reads(lease{l, ownerA, 10000}).gives(answers(1), "", renewed),
			reads(lease{l, "unknown", 90000}).gives(answers(0), "", renewed).then("SET", text, "no lock"),
			reads(lease{text, ownerA, 30000}, lease{l, ownerA, 30000}).gives(answers(0, 1), "", also(renewed, map[string]any{text: "no lock"})),
			// Java's renewal shortens the TTL, ours restores it.
			command("PEXPIRE", l, 10000).gives(int64(1), "", also(renewed, lock(l, 10000, "mode", "read", ownerA, "2", ownerB, "1", ownerC, "1"),
				map[string]any{text: "no lock"})),
			reads(lease{l, ownerB, 60000}).gives(answers(1), "", also(renewed, map[string]any{text: "no lock"})).then("DEL", protocol.HoldKey(l, ownerA, 1)),
			reads(lease{l, ownerA, 10000}).gives(answers(1), "", without(also(renewed, map[string]any{text: "no lock"}), protocol.HoldKey(l, ownerA, 1))),
			leave(l, ownerB, 0, 30000).gives(int64(1), "", without(also(renewed,
				lock(l, 30000, "mode", "read", ownerA, "2", ownerC, "1"), map[string]any{text: "no lock"}), protocol.HoldKey(l, ownerA, 1), protocol.HoldKey(l, ownerB, 1))),
		}
	}},
	{"RW5 a dead reader", func(l string) []vector {
		a, b := holdOf(l, ownerA, 1, 30000), holdOf(l, ownerB, 1, 30000)
		both := lock(l, 30000, "mode", "read", ownerA, "1", ownerB, "1")
		return []vector{
			enter(l, ownerA, 30000).gives(nil, "", also(lock(l, 30000, "mode", "read", ownerA, "1"), a)),
			enter(l, ownerB, 30000).gives(nil, "", also(both, a, b)).then("DEL", protocol.HoldKey(l, ownerA, 1)),
			reads(lease{l, ownerA, 60000}).gives(answers(0), "", also(both, b)),
			enterAgain(l, ownerA, 60000, 2).gives(nil, "", also(both, b)),
			leave(l, ownerB, 0, 30000).gives(int64(1), "", nothing, protocol.ReadWriteChannel(l)+" 0"),
		}
	}},
	// Redisson's leaves the lock to readers that are dead, until its lease ends.
	{"a downgrade to dead reads frees the lock", func(l string) []vector {
		written := lock(l, 60000, "mode", "write", writerA, "1", ownerA, "1")
		return []vector{
			enter(l, writerA, 60000).gives(nil, "", lock(l, 60000, "mode", "write", writerA, "1")),
			enter(l, ownerA, 10000).gives(nil, "", also(written, holdOf(l, ownerA, 1, 10000))).then("DEL", protocol.HoldKey(l, ownerA, 1)),
			leave(l, writerA, 0, 30000).gives(int64(1), "", nothing, protocol.ReadWriteChannel(l)+" 1"),
		}
	}},
	// Redisson's re-entry gives the new hold its own lease alone.
	{"a reader enters again by target", func(l string) []vector {
		holds := func(count int64, ms int64) map[string]any {
			all := map[string]any{}
			for k := range count {
				all = also(all, holdOf(l, ownerA, k+1, ms))
			}
			return all
		}
		return []vector{
			enterAgain(l, ownerA, 30000, 2).gives(nil, "", nothing),
			enter(l, ownerA, 30000).gives(nil, "", also(lock(l, 30000, "mode", "read", ownerA, "1"), holds(1, 30000))),
			enterAgain(l, ownerA, 10000, 2).gives(int64(1), "", also(lock(l, 30000, "mode", "read", ownerA, "2"), holds(2, 30000))),
			enterAgain(l, ownerA, 60000, 3).gives(int64(1), "", also(lock(l, 60000, "mode", "read", ownerA, "3"), holds(3, 60000))),
			enterAgain(l, ownerA, 10000, 2).gives(int64(1), "", also(lock(l, 60000, "mode", "read", ownerA, "3"), holds(3, 60000))),
			enterAgain(l, ownerA, 10000, 0).gives(int64(1), "", also(lock(l, 60000, "mode", "read", ownerA, "4"), holds(4, 60000))),
			enterAgain(l, ownerB, 10000, 1).gives(nil, "", also(lock(l, 60000, "mode", "read", ownerA, "4"), holds(4, 60000))),
			leave(l, ownerA, 2, 30000).gives(int64(0), "", also(lock(l, 30000, "mode", "read", ownerA, "2"), holds(2, 30000))),
			leave(l, ownerA, 2, 60000).gives(int64(0), "", also(lock(l, 30000, "mode", "read", ownerA, "2"), holds(2, 30000))),
			leave(l, ownerA, 3, 60000).gives(int64(0), "", also(lock(l, 30000, "mode", "read", ownerA, "2"), holds(2, 30000))),
			// A count above the number of keys.
			command("HSET", l, ownerA, "10").gives(int64(0), "", also(lock(l, 30000, "mode", "read", ownerA, "10"), holds(2, 30000))),
			enterAgain(l, ownerA, 30000, 9).gives(int64(1), "", also(lock(l, 30000, "mode", "read", ownerA, "10"), holds(10, 30000))),
			leave(l, ownerA, 9, 30000).gives(int64(0), "", also(lock(l, 30000, "mode", "read", ownerA, "9"), holds(9, 30000))),
			leave(l, ownerA, 0, 30000).gives(int64(1), "", nothing, protocol.ReadWriteChannel(l)+" 0"),
		}
	}},
	{"a read/write lock without time to live", func(l string) []vector {
		a := holdOf(l, ownerA, 1, 30000)
		persisted := also(lock(l, -1, "mode", "read", ownerA, "1"), a)
		written := lock(l, -1, "mode", "write", writerA, "1")
		return []vector{
			enter(l, ownerA, 30000).gives(nil, "", also(lock(l, 30000, "mode", "read", ownerA, "1"), a)).then("PERSIST", l),
			enter(l, writerB, 30000).gives(int64(-1), "", persisted),
			enterAgain(l, ownerA, 30000, 1).gives(int64(1), "", persisted),
			reads(lease{l, ownerA, 30000}).gives(answers(1), "", also(lock(l, 30000, "mode", "read", ownerA, "1"), a)),
			leave(l, ownerA, 0, 30000).gives(int64(1), "", nothing, protocol.ReadWriteChannel(l)+" 0"),
			enter(l, writerA, 30000).gives(nil, "", lock(l, 30000, "mode", "write", writerA, "1")).then("PERSIST", l),
			enter(l, writerB, 30000).gives([]any{int64(-1), writerA}, "", written),
			enterAgain(l, ownerA, 30000, 1).gives(int64(1), "", also(lock(l, -1, "mode", "write", writerA, "1", ownerA, "1"), a)),
			leave(l, ownerA, 0, 30000).gives(int64(1), "", written),
			enter(l, writerA, 30000).gives(nil, "", lock(l, -1, "mode", "write", writerA, "2")),
		}
	}},
	// Redisson takes a hash of another kind of lock for a free lock, and adds its own fields to it.
	{"a key that is not a read/write lock", func(l string) []vector {
		all := []vector{command("SET", l, "no lock").gives("OK", "", map[string]any{l: "no lock"})}
		refuse := func(state map[string]any, ended any) []vector {
			return []vector{
				enter(l, ownerA, 30000).gives(failure("WRONGTYPE"), "", state),
				enter(l, writerA, 30000).gives(failure("WRONGTYPE"), "", state),
				leave(l, ownerA, 0, 30000).gives(ended, "", state),
				leave(l, writerA, 0, 30000).gives(ended, "", state),
				leaveShared(l, ownerA, 30000).gives(ended, "", state),
				leaveShared(l, writerA, 30000).gives(ended, "", state),
				reads(lease{l, ownerA, 30000}).gives(answers(0), "", state),
			}
		}
		all = append(all, refuse(map[string]any{l: "no lock"}, failure("WRONGTYPE"))...)
		all = append(all, command("DEL", l).gives(int64(1), "", nothing),
			acquire(l, ownerB, 30000).gives(nil, takes, lock(l, 30000, ownerB, "1")))
		all = append(all, refuse(lock(l, 30000, ownerB, "1"), nil)...)
		return append(all,
			forceRead(l).gives(int64(0), "", lock(l, 30000, ownerB, "1")),
			forceWrite(l).gives(int64(0), "", lock(l, 30000, ownerB, "1")),
			release(l, ownerB, 0, 30000).gives(int64(1), frees, nothing, codec.LockChannel(l)+" 0"))
	}},
	// A hash of another program must not stop the server.
	{"a count that no lock has", func(l string) []vector {
		many := lock(l, -1, "mode", "read", ownerB, "1000000000000", ownerC, "nan")
		return []vector{
			command("HSET", l, "mode", "read", ownerB, "1000000000000", ownerC, "nan").gives(int64(3), "", many),
			enter(l, ownerA, 30000).gives(nil, "", also(holdOf(l, ownerA, 1, 30000),
				lock(l, 30000, "mode", "read", ownerA, "1", ownerB, "1000000000000", ownerC, "nan"))),
			leave(l, ownerA, 0, 30000).gives(int64(1), "", nothing, protocol.ReadWriteChannel(l)+" 0"),
		}
	}},
	{"names of read/write locks with braces", func(l string) []vector {
		var all []vector
		for _, name := range []string{"{" + l + "}x", "a{" + l + "}", "замок " + l, l + "}"} {
			all = append(all,
				enter(name, ownerA, 30000).gives(nil, "", also(lock(name, 30000, "mode", "read", ownerA, "1"), holdOf(name, ownerA, 1, 30000))),
				leave(name, ownerA, 0, 30000).gives(int64(1), "", nothing, protocol.ReadWriteChannel(name)+" 0"))
		}
		return all
	}},
	{"a read/write lock is inspected", func(l string) []vector {
		inspect := func() vector { return rwCall(l, ownerA, (*ReadWrite).Inspect) }
		// One field: servers differ in the order of several.
		holds := also(lock(l, -1, ownerA, "2"), holdOf(l, ownerA, 1, 10000), holdOf(l, ownerA, 2, 30000))
		return []vector{
			inspect().gives([]any{int64(-2), []any{}, []any{}}, "", nothing).then("HSET", l, ownerA, "2"),
			inspect().gives([]any{int64(-1), []any{ownerA, "2"}, []any{int64(-2)}}, "", lock(l, -1, ownerA, "2")),
			command("SET", protocol.HoldKey(l, ownerA, 1), "1", "PX", 10000).gives("OK", "",
				also(lock(l, -1, ownerA, "2"), holdOf(l, ownerA, 1, 10000))),
			command("SET", protocol.HoldKey(l, ownerA, 2), "1", "PX", 30000).gives("OK", "", holds),
			inspect().gives([]any{int64(-1), []any{ownerA, "2"}, []any{about(30000)}}, "", holds),
		}
	}},
}, readWriteReaders, readWriteLeaves, readWriteOwed)

func TestReadWriteScriptsMatchVectors(t *testing.T) {
	t.Parallel()
	playOnEachServer(t, newQuietStage, readWriteScenarios...)
}

const (
	writerA = ownerA + ":write"
	writerB = ownerB + ":write"
	writerC = ownerC + ":write"
)
