package luasrc

import (
	"testing"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// latchScenarios are the vectors of docs/protocol.md for count-down latches.
var latchScenarios = []scenario{
	{"CL1 counts down and opens", func(l string) []vector {
		opened, closed := protocol.CountDownChannel(l)+" 0", protocol.CountDownChannel(l)+" 1"
		return []vector{
			countDown(l).gives(nil, "", nothing),
			setLatch(l, 2).gives(int64(1), "", count(l, "2"), closed),
			setLatch(l, 5).gives(int64(0), "", count(l, "2")),
			countDown(l).gives(nil, "", count(l, "1")),
			countDown(l).gives(nil, "", nothing, opened),
			countDown(l).gives(nil, "", nothing),
			deleteLatch(l).gives(int64(0), "", nothing),
			setLatch(l, 1).gives(int64(1), "", count(l, "1"), closed),
			deleteLatch(l).gives(int64(1), "", nothing, closed),
			setLatch(l, 9_007_199_254_740_993).gives(int64(1), "", count(l, "9007199254740993"), closed),
			countDown(l).gives(nil, "", count(l, "9007199254740992")),
		}
	}},
	// Redisson's trySetCount accepts any number, package rlatch only numbers above 0.
	{"CL2 counts that Redisson lets in", func(l string) []vector {
		opened, closed := protocol.CountDownChannel(l)+" 0", protocol.CountDownChannel(l)+" 1"
		return []vector{
			setLatch(l, 0).gives(int64(1), "", count(l, "0"), closed),
			setLatch(l, 3).gives(int64(0), "", count(l, "0")),
			deleteLatch(l).gives(int64(1), "", nothing, closed),
			setLatch(l, -3).gives(int64(1), "", count(l, "-3"), closed),
			countDown(l).gives(nil, "", nothing).then("SET", l, "1"),
			countDown(l).gives(nil, "", nothing, opened),
		}
	}},
	// Redisson's delete removes any key.
	{"keys that are not latches", func(l string) []vector {
		hash := lock(l, -1, ownerA, "1")
		return []vector{
			command("HSET", l, ownerA, "1").gives(int64(1), "", hash),
			setLatch(l, 2).gives(failure("WRONGTYPE"), "", hash),
			countDown(l).gives(failure("WRONGTYPE"), "", hash),
			deleteLatch(l).gives(failure("WRONGTYPE"), "", hash).then("DEL", l).then("SET", l, "text"),
			setLatch(l, 2).gives(int64(0), "", count(l, "text")),
			countDown(l).gives(failure("ERR"), "", count(l, "text")),
			deleteLatch(l).gives(failure("ERR"), "", count(l, "text")),
		}
	}},
}

func TestLatchScriptsMatchVectors(t *testing.T) {
	t.Parallel()
	playOnEachServer(t, newQuietStage, latchScenarios...)
}

func latchCall(l string, fill func(latch *Latch, c *transport.Call)) vector {
	latch := Latch{Key: l, Channel: protocol.CountDownChannel(l), Publish: "PUBLISH"}
	return filled(func(c *transport.Call) { fill(&latch, c) })
}

func setLatch(l string, count int64) vector {
	return latchCall(l, func(latch *Latch, c *transport.Call) { latch.Set(c, count) })
}

func countDown(l string) vector {
	return latchCall(l, func(latch *Latch, c *transport.Call) { latch.CountDown(c) })
}

func deleteLatch(l string) vector {
	return latchCall(l, func(latch *Latch, c *transport.Call) { latch.Delete(c) })
}

func count(l, text string) map[string]any { return map[string]any{l: text} }

func kindsOfKeys(l string) []vector {
	look := filled(func(c *transport.Call) { FillKindOf(c, l) })
	theirs := held{counts: map[string]string{"name": "bob"}, pttl: -1}
	ours := held{counts: map[string]string{"name": "bob", "node:a:-57": "1"}, pttl: -1}
	readers := held{counts: map[string]string{"name": "bob", "node:a:-57": "1", "mode": "read"}, pttl: -1}
	return []vector{
		look.gives(nil, "HKEYS", nil).then("HSET", l, "name", "bob"),
		look.gives(nil, "HKEYS", map[string]any{l: theirs}).then("HSET", l, "node:a:-57", 1),
		look.gives("lock", "HKEYS", map[string]any{l: ours}).then("HSET", l, "mode", "read"),
		look.gives("read/write", "HGET", map[string]any{l: readers}).then("DEL", l).then("SET", l, "a text"),
		look.gives(nil, "GET", map[string]any{l: "a text"}).then("SET", l, "-7"),
		look.gives("number", "GET", map[string]any{l: "-7"}),
	}
}

func foreignOrNot(l string) []vector {
	look := filled(func(c *transport.Call) { FillForeign(c, l) })
	const asks = "HKEYS"
	theirs := held{counts: map[string]string{"age": "4", "name": "bob"}, pttl: -1}
	ours := held{counts: map[string]string{"age": "4", "name": "bob", "node:a:-57": "1"}, pttl: -1}
	readers := held{counts: map[string]string{"age": "4", "name": "bob", "node:a:-57": "1", "mode": "read"}, pttl: -1}
	return []vector{
		look.gives(nil, asks, nil).then("HSET", l, "age", 4, "name", "bob"),
		look.gives("age", asks, map[string]any{l: theirs}).then("HSET", l, "node:a:-57", 1),
		look.gives(nil, asks, map[string]any{l: ours}).then("HSET", l, "mode", "read"),
		look.gives("mode", asks, map[string]any{l: readers}).then("DEL", l).then("SET", l, "a text"),
		look.gives(nil, asks, map[string]any{l: "a text"}),
	}
}

const (
	takesFenced   = "EXISTS INCR HINCRBY PEXPIRE"
	entersFenced  = "EXISTS HEXISTS INCR HINCRBY PEXPIRE"
	refusesFenced = "EXISTS HEXISTS PTTL HKEYS"
)

// fencedScenarios are the vectors of docs/protocol.md for the counter, with our replies.
var fencedScenarios = []scenario{
	{"fenced: acquire, re-enter, force, acquire", func(l string) []vector {
		return []vector{
			fencedAcquire(l, ownerA, 10000).gives(int64(1), takesFenced, at(l, "1", lock(l, 10000, ownerA, "1"))),
			fencedAcquire(l, ownerA, 20000).gives(int64(2), entersFenced, at(l, "2", lock(l, 20000, ownerA, "2"))),
			fencedAcquire(l, ownerB, 5000).gives([]any{about(20000), ownerA}, refusesFenced, at(l, "2", lock(l, 20000, ownerA, "2"))),
			force(l).gives(int64(1), forceFrees, at(l, "2"), codec.LockChannel(l)+" 0"),
			force(l).gives(int64(0), forceFails, at(l, "2")),
			fencedAcquire(l, ownerB, 5000).gives(int64(3), takesFenced, at(l, "3", lock(l, 5000, ownerB, "1"))),
			// An acquire without tokens does not count; a lock without tokens can be reentered with one.
			acquire(l, ownerB, 30000).gives(nil, enters, at(l, "3", lock(l, 30000, ownerB, "2"))),
			release(l, ownerB, 0, 30000).gives(int64(1), frees, at(l, "3"), codec.LockChannel(l)+" 0").then("DEL", protocol.TokenKey(l)),
		}
	}},
	{"fenced: a lock without TTL is rejected", func(l string) []vector {
		stays := lock(l, -1, ownerB, "1")
		return []vector{
			acquire(l, ownerB, 30000).gives(nil, takes, lock(l, 30000, ownerB, "1")).then("PERSIST", l),
			fencedAcquire(l, ownerA, 5000).gives([]any{int64(-1), ownerB}, refusesFenced, stays),
		}
	}},
	{"fenced: a counter that cannot be raised", func(l string) []vector {
		var all []vector
		for _, value := range []string{"seven", "9223372036854775807"} {
			all = append(all,
				command("SET", protocol.TokenKey(l), value).gives("OK", "", at(l, value)),
				fencedAcquire(l, ownerA, 5000).gives(failure("ERR"), "EXISTS INCR", at(l, value)))
		}
		exact := "9223372036854775807"
		return append(all,
			command("SET", protocol.TokenKey(l), "9223372036854775806").gives("OK", "", at(l, "9223372036854775806")),
			fencedAcquire(l, ownerA, 5000).gives(exact, "EXISTS INCR GET HINCRBY PEXPIRE", at(l, exact, lock(l, 5000, ownerA, "1"))),
			command("DEL", l, protocol.TokenKey(l)).gives(int64(2), "", nothing))
	}},
	{"fenced: a counter below the least", func(l string) []vector {
		with := func(least int64) vector {
			return fencedCall(l, least, func(f *Plain, c *transport.Call) { f.Acquire(c, ownerA, int64(5000)) })
		}
		raise := func() vector {
			return filled(func(c *transport.Call) { FillRaise(c, protocol.TokenKey(l), int64(100)) })
		}
		return []vector{
			with(100).gives(failure("ERR"), "EXISTS GET", nothing),
			raise().gives(int64(1), "INCRBY SET", at(l, "100")),
			raise().gives(int64(0), "INCRBY", at(l, "100")),
			with(100).gives(int64(101), "EXISTS GET INCR HINCRBY PEXPIRE", at(l, "101", lock(l, 5000, ownerA, "1"))),
			with(200).gives(failure("ERR"), "EXISTS HEXISTS GET", at(l, "101", lock(l, 5000, ownerA, "1"))).then("DEL", l, protocol.TokenKey(l)),
		}
	}},
	{"fenced: passed on in one step", func(l string) []vector {
		pass := func(owner, heir string) vector {
			return fencedCall(l, 0, func(f *Plain, c *transport.Call) { f.Pass(c, owner, heir, int64(20000)) })
		}
		return []vector{
			pass(ownerA, ownerB).gives([]any{int64(0)}, "HEXISTS", nothing),
			fencedAcquire(l, ownerA, 10000).gives(int64(1), takesFenced, at(l, "1", lock(l, 10000, ownerA, "1"))),
			pass(ownerA, ownerB).gives(int64(2), "HEXISTS INCR HINCRBY DEL HINCRBY PEXPIRE", at(l, "2", lock(l, 20000, ownerB, "1"))),
			pass(ownerA, ownerB).gives([]any{int64(0)}, "HEXISTS", at(l, "2", lock(l, 20000, ownerB, "1"))).then("DEL", l, protocol.TokenKey(l)),
		}
	}},
	{"fenced: entered again by target", func(l string) []vector {
		enter := func(owner string, lease, target int64) vector {
			return fencedCall(l, 0, func(f *Plain, c *transport.Call) { f.Reenter(c, owner, lease, target) })
		}
		return []vector{
			enter(ownerA, 30000, 2).gives(nil, "HEXISTS", nothing),
			fencedAcquire(l, ownerA, 30000).gives(int64(1), takesFenced, at(l, "1", lock(l, 30000, ownerA, "1"))),
			enter(ownerA, 20000, 2).gives(int64(2), "HEXISTS INCR HGET HSET PTTL", at(l, "2", lock(l, 30000, ownerA, "2"))),
			// Repeated: the count stays, and the token is new.
			enter(ownerA, 20000, 2).gives(int64(3), "HEXISTS INCR HGET PTTL", at(l, "3", lock(l, 30000, ownerA, "2"))),
			enter(ownerA, 50000, 1).gives(int64(4), "HEXISTS INCR HGET PTTL PEXPIRE", at(l, "4", lock(l, 50000, ownerA, "2"))),
			enter(ownerB, 50000, 1).gives(nil, "HEXISTS", at(l, "4", lock(l, 50000, ownerA, "2"))).then("DEL", l, protocol.TokenKey(l)),
		}
	}},
	// The queue is that of the scripts without tokens, which share the functions.
	{"fenced: fair", func(l string) []vector {
		fair := func(fill func(f *Fair, c *transport.Call)) vector {
			f := Fair{
				Key: l, Queue: codec.QueueKey(l), Timeouts: codec.TimeoutKey(l), Channel: codec.LockChannel(l),
				Tokens: Tokens{protocol.TokenKey(l), int64(0)},
			}
			return filled(func(c *transport.Call) { fill(&f, c) })
		}
		const now, wait, lease = int64(1795225218771), int64(5000), int64(30000)
		acquire := func(owner string) vector {
			return fair(func(f *Fair, c *transport.Call) { f.Acquire(c, now, owner, wait, lease) })
		}
		try := func(owner string) vector {
			return fair(func(f *Fair, c *transport.Call) { f.Try(c, now, owner, wait, lease) })
		}
		const takes = "LINDEX EXISTS INCR LPOP ZREM ZRANGE HSET PEXPIRE"
		return []vector{
			acquire(ownerA).gives(int64(1), takes, at(l, "1", lock(l, lease, ownerA, "1"))),
			acquire(ownerA).gives(int64(2), "LINDEX EXISTS HEXISTS INCR HINCRBY PEXPIRE", at(l, "2", lock(l, lease, ownerA, "2"))),
			try(ownerB).gives([]any{about(lease), ownerA}, "LINDEX EXISTS HEXISTS PTTL HKEYS", at(l, "2", lock(l, lease, ownerA, "2"))),
			fair(func(f *Fair, c *transport.Call) { f.Reenter(c, now, ownerA, lease-10000, 3) }).
				gives(int64(3), "LINDEX HEXISTS INCR HGET HSET PTTL", at(l, "3", lock(l, lease, ownerA, "3"))),
			command("DEL", l).gives(int64(1), "", at(l, "3")),
			try(ownerB).gives(int64(4), takes, at(l, "4", lock(l, lease, ownerB, "1"))).then("DEL", l, protocol.TokenKey(l)),
		}
	}},
}

func TestFencedScriptsMatchVectors(t *testing.T) {
	t.Parallel()
	playOnEachServer(t, newStage, fencedScenarios...)
}

func fencedCall(l string, least int64, fill func(f *Plain, c *transport.Call)) vector {
	f := Plain{Key: l, Tokens: Tokens{protocol.TokenKey(l), least}}
	return filled(func(c *transport.Call) { fill(&f, c) })
}

func fencedAcquire(l, owner string, lease int64) vector {
	return fencedCall(l, 0, func(f *Plain, c *transport.Call) { f.Acquire(c, owner, lease) })
}

// at is a state with the counter of a lock.
func at(l, token string, states ...map[string]any) map[string]any {
	return also(append(states, map[string]any{protocol.TokenKey(l): token})...)
}
