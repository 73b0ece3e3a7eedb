package luasrc

import (
	"slices"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

const (
	ownerA = "11111111-1111-1111-1111-111111111111:1"
	ownerB = "22222222-2222-2222-2222-222222222222:7"
	ownerC = "33333333-3333-3333-3333-333333333333:-9223372036854775808"
)

const (
	takes       = "EXISTS HINCRBY PEXPIRE"
	enters      = "EXISTS HEXISTS HINCRBY PEXPIRE"
	isRefused   = "EXISTS HEXISTS PTTL"
	frees       = "HGET DEL PUBLISH"
	lowers      = "HGET PEXPIRE HSET"
	onlyLooks   = "HGET"
	renewsOne   = "HEXISTS PTTL PEXPIRE"
	renewsNone  = "HEXISTS"
	forceFrees  = "DEL PUBLISH"
	forceFails  = "DEL"
	shardFrees  = "HGET DEL SPUBLISH"
	shardForces = "DEL SPUBLISH"
	shardShared = "GET HGET DEL SPUBLISH SET"
)

// scenarios are the vectors of docs/protocol.md, by section, with the differences, and others.
var scenarios = slices.Concat([]scenario{
	{"13.1 acquire, enter again, release step by step", func(l string) []vector {
		return []vector{
			acquire(l, ownerA, 30000).gives(nil, takes, lock(l, 30000, ownerA, "1")),
			acquire(l, ownerA, 10000).gives(nil, enters, lock(l, 10000, ownerA, "2")),
			acquire(l, ownerB, 30000).gives(about(10000), isRefused, lock(l, 10000, ownerA, "2")),
			release(l, ownerA, 1, 30000).gives(int64(0), lowers, lock(l, 30000, ownerA, "1")),
			// Redisson finds its latch here, we the reached target.
			release(l, ownerA, 1, 60000).gives(int64(0), onlyLooks, lock(l, 30000, ownerA, "1")),
			release(l, ownerB, 0, 30000).gives(nil, onlyLooks, lock(l, 30000, ownerA, "1")),
			release(l, ownerA, 0, 30000).gives(int64(1), frees, nothing, codec.LockChannel(l)+" 0"),
			// Redisson's repeated call finds its latch and returns 1 again.
			release(l, ownerA, 0, 30000).gives(nil, onlyLooks, nothing),
			acquire(l, ownerB, 30000).gives(nil, takes, lock(l, 30000, ownerB, "1")),
		}
	}},
	{"release late, repeated, out of step", func(l string) []vector {
		return []vector{
			release(l, ownerA, 1, 30000).gives(nil, onlyLooks, nothing),
			acquire(l, ownerA, 60000).gives(nil, takes, lock(l, 60000, ownerA, "1")),
			release(l, ownerA, 2, 30000).gives(int64(0), onlyLooks, lock(l, 60000, ownerA, "1")),
			acquire(l, ownerA, 60000).gives(nil, enters, lock(l, 60000, ownerA, "2")),
			acquire(l, ownerA, 60000).gives(nil, enters, lock(l, 60000, ownerA, "3")),
			release(l, ownerA, 1, 30000).gives(int64(0), lowers, lock(l, 30000, ownerA, "1")),
			release(l, ownerA, 2, 60000).gives(int64(0), onlyLooks, lock(l, 30000, ownerA, "1")),
			acquire(l, ownerA, 60000).gives(nil, enters, lock(l, 60000, ownerA, "2")),
			release(l, ownerA, 0, 30000).gives(int64(1), frees, nothing, codec.LockChannel(l)+" 0"),
			acquire(l, ownerB, 60000).gives(nil, takes, lock(l, 60000, ownerB, "1")),
			release(l, ownerA, 0, 30000).gives(nil, onlyLooks, lock(l, 60000, ownerB, "1")),
			release(l, ownerA, 1, 30000).gives(nil, onlyLooks, lock(l, 60000, ownerB, "1")).then("HSET", l, ownerB, "10"),
			release(l, ownerB, 9, 30000).gives(int64(0), lowers, lock(l, 30000, ownerB, "9")),
			release(l, ownerB, 10, 60000).gives(int64(0), onlyLooks, lock(l, 30000, ownerB, "9")),
		}
	}},
	{"4.3 force release", func(l string) []vector {
		return []vector{
			force(l).gives(int64(0), forceFails, nothing),
			acquire(l, ownerA, 30000).gives(nil, takes, lock(l, 30000, ownerA, "1")),
			acquire(l, ownerA, 30000).gives(nil, enters, lock(l, 30000, ownerA, "2")),
			force(l).gives(int64(1), forceFrees, nothing, codec.LockChannel(l)+" 0"),
			force(l).gives(int64(0), forceFails, nothing),
		}
	}},
	{"7.2 renew one lock", func(l string) []vector {
		return []vector{
			renew(lease{l, ownerA, 30000}).gives(answers(0), renewsNone, nothing),
			acquire(l, ownerA, 10000).gives(nil, takes, lock(l, 10000, ownerA, "1")),
			renew(lease{l, ownerA, 30000}).gives(answers(1), renewsOne, lock(l, 30000, ownerA, "1")),
			renew(lease{l, ownerB, 60000}).gives(answers(0), renewsNone, lock(l, 30000, ownerA, "1")),
			// Redisson's would shorten it.
			renew(lease{l, ownerA, 10000}).gives(answers(1), "HEXISTS PTTL", lock(l, 30000, ownerA, "1")).then("PERSIST", l),
			renew(lease{l, ownerA, 10000}).gives(answers(1), renewsOne, lock(l, 10000, ownerA, "1")),
			renew().gives(answers(), "", lock(l, 10000, ownerA, "1")),
		}
	}},
	{"7.2 renew many locks", func(l string) []vector {
		l1, l2, l3, l4, text := l+":1", l+":2", l+":3", l+":4", l+":text"
		first := lock(l1, 10000, ownerA, "1")
		second := also(first, lock(l2, 10000, ownerB, "1"))
		third := also(second, lock(l3, 10000, ownerC, "1"))
		all := []lease{{l1, ownerA, 30000}, {l2, ownerA, 30000}, {text, ownerA, 30000}, {l4, ownerA, 30000}, {l3, ownerC, 60000}}
		return []vector{
			acquire(l1, ownerA, 10000).gives(nil, takes, first),
			acquire(l2, ownerB, 10000).gives(nil, takes, second),
			acquire(l3, ownerC, 10000).gives(nil, takes, third).then("SET", text, "no lock"),
			// Redisson's renewal fails for all at the key of another type.
			renew(all...).gives(answers(1, 0, 0, 0, 1), "HEXISTS PTTL PEXPIRE HEXISTS HEXISTS HEXISTS HEXISTS PTTL PEXPIRE",
				also(lock(l1, 30000, ownerA, "1"), lock(l2, 10000, ownerB, "1"), lock(l3, 60000, ownerC, "1"),
					map[string]any{text: "no lock"})),
		}
	}},
	{"a lock without TTL", func(l string) []vector {
		return []vector{
			acquire(l, ownerA, 30000).gives(nil, takes, lock(l, 30000, ownerA, "1")).then("PERSIST", l),
			acquire(l, ownerB, 30000).gives(int64(-1), isRefused, lock(l, -1, ownerA, "1")),
			release(l, ownerA, 1, 30000).gives(int64(0), onlyLooks, lock(l, -1, ownerA, "1")),
			acquire(l, ownerA, 30000).gives(nil, enters, lock(l, 30000, ownerA, "2")),
		}
	}},
	{"a key that is not a lock", func(l string) []vector {
		stays := map[string]any{l: "no lock"}
		return []vector{
			command("SET", l, "no lock").gives("OK", "", stays),
			acquire(l, ownerA, 30000).gives(failure("WRONGTYPE"), "EXISTS HEXISTS", stays),
			release(l, ownerA, 0, 30000).gives(failure("WRONGTYPE"), "HGET", stays),
			renew(lease{l, ownerA, 30000}).gives(answers(0), renewsNone, stays),
			// DEL accepts any type.
			force(l).gives(int64(1), forceFrees, nothing, codec.LockChannel(l)+" 0"),
		}
	}},
}, scenariosHolds)
var shardScenarios = []scenario{{"6.5 publish on a shard channel", shardPublish}}

// shardPublish expects no message: the listener is not a shard subscriber.
func shardPublish(l string) []vector {
	released, forced, shared := release(l, ownerA, 0, 30000), force(l), releaseShared(l, ownerA)
	for _, v := range []vector{released, forced, shared} {
		v.args[slices.Index(v.args, any("PUBLISH"))] = "SPUBLISH"
	}
	return []vector{
		acquire(l, ownerA, 30000).gives(nil, takes, lock(l, 30000, ownerA, "1")),
		released.gives(int64(1), shardFrees, nothing),
		acquire(l, ownerA, 30000).gives(nil, takes, lock(l, 30000, ownerA, "1")),
		forced.gives(int64(1), shardForces, nothing),
		acquire(l, ownerA, 30000).gives(nil, takes, lock(l, 30000, ownerA, "1")),
		shared.gives(int64(1), shardShared, latched(protocol.LatchKey(l, requestID), "1")),
	}
}

func acquire(l, owner string, lease int64) vector {
	v := acquireDetailed(l, owner, lease)
	v.args = v.args[:len(v.args)-1]
	return v
}

func acquireDetailed(l, owner string, lease int64) vector {
	return plainCall(l, func(p *Plain, c *transport.Call) { p.Acquire(c, owner, lease) })
}

func release(l, owner string, target, lease int64) vector {
	return plainCall(l, func(p *Plain, c *transport.Call) { p.Release(c, owner, lease, target) })
}

func force(l string) vector {
	return plainCall(l, func(p *Plain, c *transport.Call) { p.ForceRelease(c) })
}

type lease struct {
	lock, owner string
	millis      int64
}

func renew(leases ...lease) vector {
	return filled(func(c *transport.Call) {
		FillRenew(c, len(leases), func(i int) (key, owner, ttl any) {
			return leases[i].lock, leases[i].owner, leases[i].millis
		})
	})
}

func plainCall(l string, fill func(p *Plain, c *transport.Call)) vector {
	p := Plain{Key: l, Channel: codec.LockChannel(l), Publish: "PUBLISH"}
	return filled(func(c *transport.Call) { fill(&p, c) })
}

func filled(fill func(c *transport.Call)) vector {
	var c transport.Call
	fill(&c)
	v := vector{script: c.Script, args: c.Args[c.NumKeys:]}
	for i := range c.NumKeys {
		v.keys = append(v.keys, c.Key(i))
	}
	return v
}

func command(name string, args ...any) vector { return vector{args: append([]any{name}, args...)} }
func (v vector) gives(reply any, calls string, after map[string]any, messages ...string) vector {
	v.reply, v.calls, v.after, v.messages = reply, calls, after, messages
	return v
}

var nothing = map[string]any{}

// lock is a state of one lock; pairs are owner and count.
func lock(l string, pttl int64, pairs ...string) map[string]any {
	counts := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		counts[pairs[i]] = pairs[i+1]
	}
	return map[string]any{l: held{counts, pttl}}
}

func also(states ...map[string]any) map[string]any {
	all := map[string]any{}
	for _, state := range states {
		for key, value := range state {
			all[key] = value
		}
	}
	return all
}

func answers(numbers ...int64) []any {
	all := []any{}
	for _, n := range numbers {
		all = append(all, n)
	}
	return all
}

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
		p.ReleaseShared(c, protocol.LatchKey(l, requestID), owner, int64(30000))
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
			// All holds together, and a shorter lease.
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
		latch := protocol.LatchKey(l, requestID)
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
