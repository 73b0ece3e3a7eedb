package luasrc

import (
	"time"

	"github.com/redlatch/redlatch/codec"
)

// leases are readers by their numbers, in the order in which they came, and what each has left.
type leases [][2]int64

// of is the state of a lock that these readers have, with a time to live.
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

// made are the commands that make this state, where nothing is. Equal times end at the same moment.
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

// keys are the keys of the readers alone.
func (ls leases) keys(l string) map[string]any { return without(ls.of(l, -1), l) }

// endedBy forces the lock away and deletes the keys that remain.
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

// leaving has the first of the readers leave a lock with some time to live, and wants another.
func leaving(l string, ls leases, from, to int64) []vector {
	leaves := leave(l, readerOf(int(ls[0][0])), 0, readerLease).gives(int64(1), "", ls[1:].of(l, to))
	all := append(ls.made(l, from), leaves)
	return append(all, ls[1:].endedBy(l)...)
}

// more are the readers that there are so many of, behind others, with a lease.
func (ls leases) more(n int, lease int64) leases {
	for i := range n {
		ls = append(ls, [2]int64{int64(200 + i), lease})
	}
	return ls
}

var readWriteLeaves = []scenario{
	// What a reader leaves behind lasts as long as the longest of the others. Of more than four it is
	// taken to do so where one has as much left as the lock.
	{"a reader leaves others", func(l string) (all []vector) {
		const little, much, most = 10000, 30000, 60000
		for _, others := range []int{1, 4, 5, 17} {
			first := leases{{1, little}}.more(others-1, little)
			// The lock had more than the longest, and this is not the newest.
			longest := append(leases{{1, little}, {2, much}}, first[1:]...)
			if others < 17 {
				all = append(all, leaving(l, longest, most, much)...)
			} else {
				all = append(all, leaving(l, longest, much, much)...)
			}
			// The one that goes was the longest.
			all = append(all, leaving(l, append(leases{{1, most}, {2, much}}, first[1:]...), most, much)...)
			// The lock never expired, and the one that goes was dead.
			all = append(all, leaving(l, append(leases{{1, 0}, {2, much}}, first[1:]...), -1, much)...)
		}
		// The lock had less than a reader, as after a renewal of Java's, and as much as another: the newest,
		// or the one before where the clock of the server goes on by a millisecond within the script.
		asMuch := leases{{1, little}, {2, most}, {200, much + 2}, {201, much + 1}, {202, much}}
		return append(all, leaving(l, asMuch, much, most)...)
	}},
	// What programs and servers never do, and hands may.
	{"readers of a lock that was made by hand", func(l string) []vector {
		a := holdOf(l, ownerA, 1, 30000)
		many := leases{{longestReader, longestLease}}.more(17, readerLease)
		latch := codec.LatchKey(l, requestID)
		return append([]vector{
			enter(l, ownerA, 0).gives(nil, "", nothing),
			enter(l, ownerA, 30000).gives(nil, "", also(lock(l, 30000, "mode", "read", ownerA, "1"), a)),
			enter(l, ownerB, 0).gives(nil, "", also(lock(l, 30000, "mode", "read", ownerA, "1", ownerB, "1"), a)),
			forceRead(l).gives(int64(1), "", a, codec.ReadWriteChannel(l)+" 0"),
			command("DEL", codec.HoldKey(l, ownerA, 1)).gives(int64(1), "", nothing),
			command("HSET", l, "mode", "write", ownerA, "1").gives(int64(2), "", lock(l, -1, "mode", "write", ownerA, "1")),
			leave(l, ownerA, 0, 30000).gives(int64(1), "", lock(l, -1, "mode", "write")),
			command("DEL", l).gives(int64(1), "", nothing),
			command("HSET", l, "mode", "read", ownerA, "none").gives(int64(2), "", lock(l, -1, "mode", "read", ownerA, "none")),
			command("SET", codec.HoldKey(l, ownerA, 1), "1", "PX", 30000).gives("OK", "", also(lock(l, -1, "mode", "read", ownerA, "none"), a)),
			leave(l, ownerA, 0, 30000).gives(int64(1), "", a, codec.ReadWriteChannel(l)+" 0"),
			command("DEL", codec.HoldKey(l, ownerA, 1)).gives(int64(1), "", nothing),
		}, append(many.made(l, longestLease),
			leaveShared(l, readerOf(longestReader), readerLease).gives(int64(0), "", also(many[1:].of(l, readerLease), latched(latch, "0"))))...)
	}},
}
