package luasrc

import (
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
)

var readWriteOwed = []scenario{
	// Redisson's release deletes the newest key even if the other holds have none, and frees the lock.
	{"a release of a shared reader keeps live holds", func(l string) []vector {
		latch, channel := protocol.LatchKey(l, requestID), protocol.ReadWriteChannel(l)
		short, long := holdOf(l, ownerA, 1, 10000), holdOf(l, ownerA, 2, 90000)
		reading := func(ttl int64, count string) map[string]any { return lock(l, ttl, "mode", "read", ownerA, count) }
		endless := map[string]any{protocol.HoldKey(l, ownerA, 1): "1"}
		one := also(reading(90000, "1"), holdOf(l, ownerA, 1, 90000))
		two := also(reading(90000, "2"), holdOf(l, ownerA, 1, 90000), holdOf(l, ownerA, 2, 90000))
		all := []vector{
			// The key of the older hold is gone: it gets the other's lease.
			enter(l, ownerA, 10000).gives(nil, "", also(reading(10000, "1"), short)),
			enter(l, ownerA, 90000).gives(nil, "", also(reading(90000, "2"), short, long)).then("DEL", protocol.HoldKey(l, ownerA, 1)),
			leaveShared(l, ownerA, 30000).gives(int64(0), "", also(one, latched(latch, "0"))),
			leaveShared(l, ownerA, 30000).gives(int64(0), "", also(one, latched(latch, "0"))).then("DEL", latch),
			enter(l, ownerA, 10000).gives(nil, "", also(reading(90000, "2"), holdOf(l, ownerA, 1, 90000), holdOf(l, ownerA, 2, 10000))),
			enter(l, ownerA, 10000).gives(nil, "", also(reading(90000, "3"), holdOf(l, ownerA, 1, 90000), holdOf(l, ownerA, 2, 10000), holdOf(l, ownerA, 3, 10000))),
			leaveShared(l, ownerA, 30000).gives(int64(0), "", also(two, latched(latch, "0"))).then("DEL", latch),
			enter(l, ownerA, 10000).gives(nil, "", also(reading(90000, "3"), holdOf(l, ownerA, 1, 90000), holdOf(l, ownerA, 2, 90000), holdOf(l, ownerA, 3, 10000))),
			leaveShared(l, ownerA, 120000).gives(int64(0), "", also(reading(120000, "2"), holdOf(l, ownerA, 1, 120000), holdOf(l, ownerA, 2, 120000), latched(latch, "0"))),
			command("DEL", latch).gives(int64(1), "", also(reading(120000, "2"), holdOf(l, ownerA, 1, 120000), holdOf(l, ownerA, 2, 120000))),
			// A key without expiry stays so.
			command("PERSIST", protocol.HoldKey(l, ownerA, 1)).gives(int64(1), "", also(reading(120000, "2"), endless, holdOf(l, ownerA, 2, 120000))),
			enter(l, ownerB, 60000).gives(nil, "", also(lock(l, 120000, "mode", "read", ownerA, "2", ownerB, "1"),
				endless, holdOf(l, ownerA, 2, 120000), holdOf(l, ownerB, 1, 60000))),
			leaveShared(l, ownerA, 30000).gives(int64(0), "", also(lock(l, 60000, "mode", "read", ownerA, "1", ownerB, "1"),
				endless, holdOf(l, ownerB, 1, 60000), latched(latch, "0"))),
			command("DEL", latch, l, protocol.HoldKey(l, ownerA, 1), protocol.HoldKey(l, ownerB, 1)).gives(int64(4), "", nothing),
		}
		// All holds have expired.
		return append(all,
			command("HSET", l, "mode", "read", ownerA, "2").gives(int64(2), "", lock(l, -1, "mode", "read", ownerA, "2")),
			leaveShared(l, ownerA, 30000).gives(int64(1), "", latched(latch, "1"), channel+" 0"))
	}},
	// Redisson's leaves the lock the writer's lease.
	{"a downgrade lasts as long as its reads", func(l string) []vector {
		channel := protocol.ReadWriteChannel(l)
		a := holdOf(l, ownerA, 1, 10000)
		written := lock(l, 60000, "mode", "write", writerA, "1", ownerA, "1")
		left := also(lock(l, 10000, "mode", "read", ownerA, "1"), a)
		return []vector{
			enter(l, writerA, 60000).gives(nil, "", lock(l, 60000, "mode", "write", writerA, "1")),
			enter(l, ownerA, 10000).gives(nil, "", also(written, a)),
			leave(l, writerA, 0, 30000).gives(int64(1), "", left, channel+" 1"),
			leave(l, ownerA, 0, 30000).gives(int64(1), "", nothing, channel+" 0"),
			enter(l, writerA, 60000).gives(nil, "", lock(l, 60000, "mode", "write", writerA, "1")),
			enter(l, ownerA, 10000).gives(nil, "", also(written, a)).then("PERSIST", l),
			leaveShared(l, writerA, 30000).gives(int64(1), "", also(left, latched(protocol.LatchKey(l, requestID), "1")), channel+" 1"),
		}
	}},
	// Redisson's sets the TTL to the leaving writer's lease, and adds that of a new one.
	{"a release of a shared writer leaves the others their lease", func(l string) []vector {
		latch, a := protocol.LatchKey(l, requestID), holdOf(l, ownerA, 1, 60000)
		written := func(ttl int64, count string) map[string]any { return lock(l, ttl, "mode", "write", writerA, count) }
		return []vector{
			enter(l, writerA, 60000).gives(nil, "", written(60000, "1")),
			enter(l, writerA, 10000).gives(nil, "", written(60000, "2")),
			leaveShared(l, writerA, 30000).gives(int64(0), "", also(written(60000, "1"), latched(latch, "0"))).then("DEL", latch),
			enter(l, writerA, 90000).gives(nil, "", written(90000, "2")),
			leaveShared(l, writerA, 120000).gives(int64(0), "", also(written(120000, "1"), latched(latch, "0"))).then("DEL", latch).then("PERSIST", l),
			enter(l, writerA, 10000).gives(nil, "", written(-1, "2")),
			leaveShared(l, writerA, 30000).gives(int64(0), "", also(written(-1, "1"), latched(latch, "0"))).then("DEL", latch),
			// A read lasts longer than the lock, as after Java's renewal.
			enter(l, writerA, 10000).gives(nil, "", written(-1, "2")),
			enter(l, ownerA, 60000).gives(nil, "", also(lock(l, -1, "mode", "write", writerA, "2", ownerA, "1"), a)).then("PEXPIRE", l, 5000),
			leaveShared(l, writerA, 10000).gives(int64(0), "", also(lock(l, 60000, "mode", "write", writerA, "1", ownerA, "1"), a, latched(latch, "0"))),
		}
	}},
	// Redisson's gives the lock the lease of the next reader, or of the next renewal.
	{"a lock without time to live keeps what its holders are owed", func(l string) []vector {
		a, b := holdOf(l, ownerA, 1, 60000), holdOf(l, ownerB, 1, 10000)
		both := []string{"mode", "read", ownerA, "1", ownerB, "1"}
		inside := []string{"mode", "write", writerC, "1", ownerC, "1"}
		c := holdOf(l, ownerC, 1, 10000)
		return []vector{
			enter(l, ownerA, 60000).gives(nil, "", also(lock(l, 60000, "mode", "read", ownerA, "1"), a)).then("PERSIST", l),
			enter(l, ownerB, 10000).gives(nil, "", also(lock(l, 60000, both...), a, b)).then("PERSIST", l),
			reads(lease{l, ownerB, 10000}).gives(answers(1), "", also(lock(l, 60000, both...), a, b)),
			forceRead(l).gives(int64(1), "", also(a, b), protocol.ReadWriteChannel(l)+" 0"),
			// A key beyond the count is not a hold; the next hold reuses it.
			command("HSET", l, "mode", "read", ownerB, "0").gives(int64(2), "", also(lock(l, -1, "mode", "read", ownerB, "0"), a, b)),
			enter(l, ownerB, 20000).gives(nil, "", also(lock(l, 20000, "mode", "read", ownerB, "1"), a, holdOf(l, ownerB, 1, 20000))).then("HSET", l, ownerA, "0"),
			command("PERSIST", l).gives(int64(1), "", also(lock(l, -1, "mode", "read", ownerA, "0", ownerB, "1"), a, holdOf(l, ownerB, 1, 20000))),
			enter(l, ownerA, 30000).gives(nil, "", also(lock(l, 30000, "mode", "read", ownerA, "1", ownerB, "1"), holdOf(l, ownerA, 1, 30000), holdOf(l, ownerB, 1, 20000))),
			forceRead(l).gives(int64(1), "", also(holdOf(l, ownerA, 1, 30000), holdOf(l, ownerB, 1, 20000)), protocol.ReadWriteChannel(l)+" 0"),
			// A write lock stays without expiry: the writer's lease is unknown.
			command("DEL", protocol.HoldKey(l, ownerA, 1), protocol.HoldKey(l, ownerB, 1)).gives(int64(2), "", nothing).then("HSET", l, "mode", "write", writerC, "1"),
			enter(l, ownerC, 10000).gives(nil, "", also(lock(l, -1, inside...), c)),
			reads(lease{l, ownerC, 10000}).gives(answers(1), "", also(lock(l, -1, inside...), c)),
		}
	}},
}

// leases are readers by number, in order of arrival, with their remaining leases.
type leases [][2]int64

// of returns the state of a lock held by these readers with a TTL.
func (ls leases) of(l string, ttl int64) map[string]any {
	fields, keys := []string{"mode", "read"}, map[string]any{}
	for _, r := range ls {
		fields = append(fields, readerOf(int(r[0])), "1")
		if r[1] > 0 {
			keys = also(keys, holdOf(l, readerOf(int(r[0])), 1, r[1]))
		}
	}
	return also(lock(l, ttl, fields...), keys)
}

// made returns the commands that create this state. Equal leases end at the same moment.
func (ls leases) made(l string, ttl int64) (all []vector) {
	now := time.Now().UnixMilli()
	hash := []any{l, "mode", "read"}
	for i, r := range ls {
		hash = append(hash, readerOf(int(r[0])), 1)
		if r[1] > 0 {
			all = append(all, command("SET", protocol.HoldKey(l, readerOf(int(r[0])), 1), "1", "PXAT", now+r[1]).gives("OK", "", ls[:i+1].keys(l)))
		}
	}
	all = append(all, command("HSET", hash...).gives(int64(len(ls)+1), "", ls.of(l, -1)))
	if ttl > 0 {
		all = append(all, command("PEXPIREAT", l, now+ttl).gives(int64(1), "", ls.of(l, ttl)))
	}
	return all
}

func (ls leases) keys(l string) map[string]any { return without(ls.of(l, -1), l) }

// endedBy force-releases the lock and deletes the remaining keys.
func (ls leases) endedBy(l string) []vector {
	var keys []any
	for name := range ls.keys(l) {
		keys = append(keys, name)
	}
	return []vector{
		forceRead(l).gives(int64(1), "", ls.keys(l), protocol.ReadWriteChannel(l)+" 0"),
		command("DEL", keys...).gives(int64(len(keys)), "", nothing),
	}
}

// leaving releases the first reader of a lock with one TTL, and expects another.
func leaving(l string, ls leases, from, to int64) []vector {
	leaves := leave(l, readerOf(int(ls[0][0])), 0, readerLease).gives(int64(1), "", ls[1:].of(l, to))
	all := append(ls.made(l, from), leaves)
	return append(all, ls[1:].endedBy(l)...)
}

// more appends n readers with a lease.
func (ls leases) more(n int, lease int64) leases {
	for i := range n {
		ls = append(ls, [2]int64{int64(200 + i), lease})
	}
	return ls
}

var readWriteLeaves = []scenario{
	// The remaining lock lasts as long as its longest hold; of more than four readers, as long as before if
	// one hold has as much left.
	{"a reader leaves others", func(l string) (all []vector) {
		const little, much, most = 10000, 30000, 60000
		for _, others := range []int{1, 4, 5, 17} {
			first := leases{{1, little}}.more(others-1, little)
			// The lock outlives its longest hold, which is not the newest.
			longest := append(leases{{1, little}, {2, much}}, first[1:]...)
			if others < 17 {
				all = append(all, leaving(l, longest, most, much)...)
			} else {
				all = append(all, leaving(l, longest, much, much)...)
			}
			all = append(all, leaving(l, append(leases{{1, most}, {2, much}}, first[1:]...), most, much)...)
			// The lock had no expiry, and the leaving reader was dead.
			all = append(all, leaving(l, append(leases{{1, 0}, {2, much}}, first[1:]...), -1, much)...)
		}
		// The lock had less than a reader, as after Java's renewal, and as much as another, within the
		// milliseconds that pass in the script.
		asMuch := leases{{1, little}, {2, most}, {200, much + 2}, {201, much + 1}, {202, much}}
		return append(all, leaving(l, asMuch, much, most)...)
	}},
	// States made by hand.
	{"readers of a lock that was made by hand", func(l string) []vector {
		a := holdOf(l, ownerA, 1, 30000)
		many := leases{{longestReader, longestLease}}.more(17, readerLease)
		latch := protocol.LatchKey(l, requestID)
		return append([]vector{
			enter(l, ownerA, 0).gives(nil, "", nothing),
			enter(l, ownerA, 30000).gives(nil, "", also(lock(l, 30000, "mode", "read", ownerA, "1"), a)),
			enter(l, ownerB, 0).gives(nil, "", also(lock(l, 30000, "mode", "read", ownerA, "1", ownerB, "1"), a)),
			forceRead(l).gives(int64(1), "", a, protocol.ReadWriteChannel(l)+" 0").then("DEL", protocol.HoldKey(l, ownerA, 1)),
			command("HSET", l, "mode", "write", ownerA, "1").gives(int64(2), "", lock(l, -1, "mode", "write", ownerA, "1")),
			leave(l, ownerA, 0, 30000).gives(int64(1), "", lock(l, -1, "mode", "write")).then("DEL", l).then("HSET", l, "mode", "read", ownerA, "none"),
			command("SET", protocol.HoldKey(l, ownerA, 1), "1", "PX", 30000).gives("OK", "", also(lock(l, -1, "mode", "read", ownerA, "none"), a)),
			leave(l, ownerA, 0, 30000).gives(int64(1), "", a, protocol.ReadWriteChannel(l)+" 0").then("DEL", protocol.HoldKey(l, ownerA, 1)),
		}, append(many.made(l, longestLease),
			leaveShared(l, readerOf(longestReader), readerLease).gives(int64(0), "", also(many[1:].of(l, readerLease), latched(latch, "0"))))...)
	}},
}
