package luasrc

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

const (
	raises       = "HGET HSET PTTL"
	raisesLonger = "HGET HSET PTTL PEXPIRE"
	staysIn      = "HGET PTTL"
	sharedLowers = "GET HGET PEXPIRE HINCRBY SET"
	sharedFrees  = "GET HGET DEL PUBLISH SET"
	sharedRepeat = "GET"
	sharedNot    = "GET HGET"
)

const requestID = "deadbeefdeadbeefdeadbeefdeadbeef"

func reenter(l, owner string, lease, target int64) vector {
	return plainCall(l, func(p *Plain, c *transport.Call) { p.Reenter(c, owner, lease, target) })
}

func releaseShared(l, owner string) vector {
	return plainCall(l, func(p *Plain, c *transport.Call) {
		p.ReleaseShared(c, codec.LatchKey(l, requestID), owner, int64(30000))
	})
}

func latched(latch, value string) map[string]any {
	return map[string]any{latch: held{map[string]string{"": value}, 16000}}
}

var scenariosHolds = []scenario{
	{"enter again by target", func(l string) []vector {
		return []vector{
			acquire(l, ownerA, 30000).gives(nil, takes, lock(l, 30000, ownerA, "1")),
			reenter(l, ownerA, 45000, 2).gives(int64(1), raisesLonger, lock(l, 45000, ownerA, "2")),
			reenter(l, ownerA, 20000, 2).gives(int64(1), staysIn, lock(l, 45000, ownerA, "2")),
			reenter(l, ownerA, 20000, 1).gives(int64(1), staysIn, lock(l, 45000, ownerA, "2")),
			reenter(l, ownerA, 60000, 10).gives(int64(1), raisesLonger, lock(l, 60000, ownerA, "10")),
			reenter(l, ownerA, 20000, 9).gives(int64(1), staysIn, lock(l, 60000, ownerA, "10")),
			reenter(l, ownerA, 20000, 0).gives(int64(1), "HGET HINCRBY PTTL", lock(l, 60000, ownerA, "11")),
			release(l, ownerA, 0, 30000).gives(int64(1), frees, nothing, codec.LockChannel(l)+" 0"),
			reenter(l, ownerA, 20000, 0).gives(nil, onlyLooks, nothing),
		}
	}},
	{"enter again never takes or shortens", func(l string) []vector {
		return []vector{
			reenter(l, ownerA, 30000, 2).gives(nil, onlyLooks, nothing),
			acquire(l, ownerB, 30000).gives(nil, takes, lock(l, 30000, ownerB, "1")),
			reenter(l, ownerA, 30000, 2).gives(nil, onlyLooks, lock(l, 30000, ownerB, "1")).then("PERSIST", l),
			reenter(l, ownerB, 30000, 2).gives(int64(1), raises, lock(l, -1, ownerB, "2")),
		}
	}},
	{"a lock is written once more as it is", func(l string) []vector {
		replicate := func(owner string) vector {
			return filled(func(c *transport.Call) { FillReplicate(c, l, owner) })
		}
		const rewrites = "HGET HSET"
		return []vector{
			replicate(ownerA).gives(nil, onlyLooks, nothing),
			acquire(l, ownerA, 30000).gives(nil, takes, lock(l, 30000, ownerA, "1")),
			replicate(ownerA).gives(int64(1), rewrites, lock(l, 30000, ownerA, "1")),
			replicate(ownerB).gives(nil, onlyLooks, lock(l, 30000, ownerA, "1")),
			acquire(l, ownerA, 20000).gives(nil, enters, lock(l, 20000, ownerA, "2")),
			replicate(ownerA).gives(int64(1), rewrites, lock(l, 20000, ownerA, "2")).then("PERSIST", l),
			replicate(ownerA).gives(int64(1), rewrites, lock(l, -1, ownerA, "2")),
		}
	}},
	{"a lock is passed on in one step", func(l string) []vector {
		pass := func(from, heir string, lease int64) vector {
			return plainCall(l, func(p *Plain, c *transport.Call) { p.Pass(c, from, heir, lease) })
		}
		const passes, hasNot = "HEXISTS HINCRBY DEL HINCRBY PEXPIRE", "HEXISTS"
		return []vector{
			pass(ownerA, ownerB, 30000).gives(int64(0), hasNot, nothing),
			acquire(l, ownerA, 30000).gives(nil, takes, lock(l, 30000, ownerA, "1")),
			pass(ownerA, ownerB, 50000).gives(nil, passes, lock(l, 50000, ownerB, "1")),
			pass(ownerA, ownerB, 30000).gives(int64(0), hasNot, lock(l, 50000, ownerB, "1")),
			// All holds at once, and a shorter lease.
			acquire(l, ownerB, 50000).gives(nil, enters, lock(l, 50000, ownerB, "2")),
			pass(ownerB, ownerA, 20000).gives(nil, passes, lock(l, 20000, ownerA, "1")).then("PERSIST", l),
			pass(ownerA, ownerB, 20000).gives(nil, passes, lock(l, 20000, ownerB, "1")),
			release(l, ownerA, 0, 30000).gives(nil, onlyLooks, lock(l, 20000, ownerB, "1")),
			release(l, ownerB, 0, 30000).gives(int64(1), frees, nothing, codec.LockChannel(l)+" 0"),
		}
	}},
	{"a refusal that names the holder", func(l string) []vector {
		tell := func(owner string) vector { return acquireDetailed(l, owner, 30000) }
		return []vector{
			tell(ownerA).gives(nil, takes, lock(l, 30000, ownerA, "1")),
			tell(ownerA).gives(nil, enters, lock(l, 30000, ownerA, "2")),
			tell(ownerB).gives([]any{about(30000), ownerA}, isRefused+" HKEYS", lock(l, 30000, ownerA, "2")).then("PERSIST", l),
			tell(ownerB).gives([]any{int64(-1), ownerA}, isRefused+" HKEYS", lock(l, -1, ownerA, "2")),
		}
	}},
	{"inspect", func(l string) []vector {
		inspect := func() vector {
			return plainCall(l, func(p *Plain, c *transport.Call) { p.Inspect(c) })
		}
		const looks = "PTTL HGETALL"
		return []vector{
			inspect().gives([]any{int64(-2), []any{}}, looks, nothing),
			acquire(l, ownerA, 30000).gives(nil, takes, lock(l, 30000, ownerA, "1")),
			acquire(l, ownerA, 30000).gives(nil, enters, lock(l, 30000, ownerA, "2")),
			inspect().gives([]any{about(30000), []any{ownerA, "2"}}, looks, lock(l, 30000, ownerA, "2")).then("PERSIST", l),
			inspect().gives([]any{int64(-1), []any{ownerA, "2"}}, looks, lock(l, -1, ownerA, "2")),
		}
	}},
	{"4.2 shared release with latch", func(l string) []vector {
		latch := codec.LatchKey(l, requestID)
		return []vector{
			acquire(l, ownerA, 30000).gives(nil, takes, lock(l, 30000, ownerA, "1")),
			acquire(l, ownerA, 10000).gives(nil, enters, lock(l, 10000, ownerA, "2")),
			releaseShared(l, ownerA).gives(int64(0), sharedLowers, also(lock(l, 30000, ownerA, "1"), latched(latch, "0"))),
			releaseShared(l, ownerA).gives(int64(0), sharedRepeat, also(lock(l, 30000, ownerA, "1"), latched(latch, "0"))).then("DEL", latch),
			releaseShared(l, ownerA).gives(int64(1), sharedFrees, latched(latch, "1"), codec.LockChannel(l)+" 0"),
			releaseShared(l, ownerA).gives(int64(1), sharedRepeat, latched(latch, "1")).then("DEL", latch),
			releaseShared(l, ownerA).gives(nil, sharedNot, nothing),
		}
	}},
	{"4.2 shared release that is not one", func(l string) []vector {
		return []vector{
			releaseShared(l, ownerA).gives(nil, sharedNot, nothing),
			acquire(l, ownerB, 30000).gives(nil, takes, lock(l, 30000, ownerB, "1")),
			releaseShared(l, ownerA).gives(nil, sharedNot, lock(l, 30000, ownerB, "1")),
		}
	}},
}
