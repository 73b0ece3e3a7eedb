package luasrc

import (
	"time"

	"github.com/redlatch/redlatch/codec"
)

// leases are readers by number, in order of arrival, with their remaining leases.
type leases [][2]int64

// of returns the state of a lock of these readers with a TTL.
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
			all = append(all, command("SET", codec.HoldKey(l, readerOf(int(r[0])), 1), "1", "PXAT", now+r[1]).gives("OK", "", ls[:i+1].keys(l)))
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
		forceRead(l).gives(int64(1), "", ls.keys(l), codec.ReadWriteChannel(l)+" 0"),
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
		latch := codec.LatchKey(l, requestID)
		return append([]vector{
			enter(l, ownerA, 0).gives(nil, "", nothing),
			enter(l, ownerA, 30000).gives(nil, "", also(lock(l, 30000, "mode", "read", ownerA, "1"), a)),
			enter(l, ownerB, 0).gives(nil, "", also(lock(l, 30000, "mode", "read", ownerA, "1", ownerB, "1"), a)),
			forceRead(l).gives(int64(1), "", a, codec.ReadWriteChannel(l)+" 0").then("DEL", codec.HoldKey(l, ownerA, 1)),
			command("HSET", l, "mode", "write", ownerA, "1").gives(int64(2), "", lock(l, -1, "mode", "write", ownerA, "1")),
			leave(l, ownerA, 0, 30000).gives(int64(1), "", lock(l, -1, "mode", "write")).then("DEL", l).then("HSET", l, "mode", "read", ownerA, "none"),
			command("SET", codec.HoldKey(l, ownerA, 1), "1", "PX", 30000).gives("OK", "", also(lock(l, -1, "mode", "read", ownerA, "none"), a)),
			leave(l, ownerA, 0, 30000).gives(int64(1), "", a, codec.ReadWriteChannel(l)+" 0").then("DEL", codec.HoldKey(l, ownerA, 1)),
		}, append(many.made(l, longestLease),
			leaveShared(l, readerOf(longestReader), readerLease).gives(int64(0), "", also(many[1:].of(l, readerLease), latched(latch, "0"))))...)
	}},
}
