package luasrc

import (
	"slices"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// fairStories run on every server. A number is a section of docs/protocol.md that describes Redisson's behavior; "ours"
// marks an intended difference.
var fairStories = slices.Concat(fairVectors, fairTakes, fairQueues, fairReleases, fairLeaves, fairHeartbeats, fairEvictions)

var fairVectors = []fairStory{
	{"13.2 the fair lock, row by row", fairRows},
	{"13.2 a head without a deadline", func(f *fairPlayer) {
		f.push("dead")
		f.acquire(a51, 0, fairWait)
		want := map[string]any{codec.QueueKey(f.l): queue{"dead", a51}, codec.TimeoutKey(f.l): timeouts{a51: float64(t0 - 2 + fairWait)}}
		f.leaves(want)
		f.acquire(a51, 0, fairWait)
		f.leaves(want)
	}},
	{"13.2 a lock without time to live", func(f *fairPlayer) {
		f.command("HSET", f.l, a1, "1")
		for range 2 {
			f.acquire(a2, 0, fairWait)
			f.leaves(lock(f.l, -1, a1, "1"), f.entries(in(a2, fairWait-1)))
		}
	}},
}

// fairRows contains the states in docs/protocol.md, which also verify the model.
func fairRows(f *fairPlayer) {
	f.acquire(a1, 0, fairWait)
	f.leaves(lock(f.l, fairLease, a1, "1"))
	f.acquire(a2, 0, fairWait)
	second := int64(f.Deadlines[a2]) - t0 // 330000, less the time that has passed
	first := also(lock(f.l, fairLease, a1, "1"), f.entries(in(a2, second)))
	f.leaves(first)
	f.acquire(a3, 0, 5000)
	both := also(first, f.entries(in(a2, second), in(a3, second+5000)))
	f.leaves(both)
	f.acquire(a2, 0, fairWait)
	f.leaves(both)
	f.try(a4, 0, fairWait)
	f.leaves(both)
	f.giveUp(a2, 0, 5000)
	moved := also(lock(f.l, fairLease, a1, "1"), f.entries(in(a3, second)))
	f.leaves(moved)
	f.releaseShared(a9, 0)
	f.leaves(moved)
	f.release(a9, 0, 0)
	f.leaves(moved)
	f.releaseShared(a1, 0)
	latch := latched(protocol.LatchKey(f.l, requestID), "1")
	f.leaves(latch, f.entries(in(a3, second)))
	f.acquire(a5, 3, fairWait)
	f.leaves(latch, f.entries(in(a3, second), in(a5, second+fairWait)))
	f.acquire(a5, 3, fairWait)
	f.leaves(latch, f.entries(in(a3, second), in(a5, second+fairWait)))
	f.acquire(a3, 3, 5000)
	f.leaves(latch, lock(f.l, fairLease, a3, "1"), f.entries(in(a5, second+fairWait-5000)))
	f.acquire(a3, 3, 5000)
	f.leaves(latch, lock(f.l, fairLease, a3, "2"), f.entries(in(a5, second+fairWait-5000)))
}

// fairShard needs sharded pub/sub. The listener is not a shard subscriber, so it gets no messages.
var fairShard = fairStory{"6.5 publish on a shard channel", func(f *fairPlayer) {
	f.publish = "SPUBLISH"
	f.enqueue(in(a2, 10))
	f.hold()
	f.release(a9, 0, 0).costs("LINDEX ZSCORE HGET DEL SPUBLISH")
	f.hold()
	f.force(0).costs("LINDEX ZSCORE DEL SPUBLISH")
	f.giveUp(a1, 0, 0).costs("LRANGE ZREM LREM EXISTS LRANGE SPUBLISH ZSCORE")
	f.nudge(a2).costs("EXISTS LINDEX SPUBLISH")
	f.command("LPUSH", codec.QueueKey(f.l), "dead")
	f.evict(entry{"dead", none}).costs("PTTL LINDEX ZSCORE ZREM LPOP LRANGE SPUBLISH ZSCORE")
	f.hold()
	f.releaseShared(a9, 0).costs("GET LINDEX ZSCORE HGET DEL SET SPUBLISH")
}}

// prunes plays one call of each script that removes overdue waiters, on a lock held by a9; none of them
// changes anything else.
func (f *fairPlayer) prunes(prepare func()) {
	for _, call := range []func(){
		func() { f.try(a5, 0, 7) },
		func() { f.acquire(a4, 0, 7) },
		func() { f.reenter(a9, 7, 1) },
		func() { f.release(a9, 0, 1) },
		func() { f.release(a5, 0, 0) },
		func() { f.releaseShared(a5, 0) },
		func() { f.force(0); f.force(1) },
	} {
		prepare()
		call()
		f.clear()
	}
}

var fairTakes = []fairStory{
	{"5.1 a deadline that is now has passed, one a millisecond later has not", func(f *fairPlayer) {
		f.enqueue(in(a2, 0))
		f.try(a1, -1, fairWait)
		f.try(a1, 0, fairWait)
	}},
	{"5.1 overdue waiters are removed from the head on, and only there", func(f *fairPlayer) {
		f.hold()
		f.prunes(func() {
			f.enqueue(in(a1, -9), in(a2, -5), in(a3, 1), in(a4, -7))
			f.push(a2) // the second place of a removed waiter stays
		})
	}},
	{"5.1 a head without a deadline protects the overdue behind it", func(f *fairPlayer) {
		f.hold()
		f.prunes(func() {
			f.push("dead")
			f.enqueue(in(a4, -5))
		})
		f.push("dead")
		f.enqueue(in(a4, -5))
		f.try(a4, 0, fairWait)
	}},
	{"5.2 a try takes a free lock for the next owner", func(f *fairPlayer) {
		f.try(a1, 0, fairWait).costs("LINDEX EXISTS LPOP ZREM ZRANGE HSET PEXPIRE")
		f.command("DEL", f.l)
		f.enqueue(in(a2, 10), in(a3, 20), in(a4, 30))
		f.try(a3, 0, fairWait)
		f.try(a2, 0, 15)
	}},
	{"5.2 a try never queues", func(f *fairPlayer) {
		f.enqueue(in(a2, 10))
		f.try(a1, 0, fairWait)
		f.hold()
		f.try(a1, 10, fairWait)
	}},
	{"5.2 an owner that takes the lock leaves one place and its deadline", func(f *fairPlayer) {
		f.enqueue(in(a2, 10), in(a3, 20))
		f.push(a2)
		f.acquire(a2, 0, 5)
	}},
	{"5.2 an owner with a deadline but no place takes a lock without a queue", func(f *fairPlayer) {
		f.set(t0+10, a2)
		f.acquire(a2, 0, 5)
		f.set(t0+10, a3)
		f.try(a3, 0, 5)
	}},
	{"5.2 all deadlines fall by the wait", func(f *fairPlayer) {
		f.enqueue(in(a2, 10), in(a3, 4000))
		f.set(7, "no place", -100, "long past")
		f.push("no deadline")
		f.acquire(a2, 0, 5000)
	}},
	{"5.2 fractions of deadlines survive", func(f *fairPlayer) {
		for _, take := range []func(owner string, now, wait int64) *fairPlayer{f.try, f.acquire} {
			f.command("DEL", f.l)
			f.set("1795224888771.7", a2, "0.3", a3, "-2.75", a4, "922337203685477", a5)
			take(a1, 0, 1000)
		}
		f.push(a2)
		f.acquire(a9, -9000000, 250) // the reply is an integer
	}},
	{"5.2 reentry renews the lease, and needs no place", func(f *fairPlayer) {
		f.try(a1, 0, fairWait)
		f.enqueue(in(a2, 10), in(a1, 20))
		f.command("PEXPIRE", f.l, 90000)
		f.try(a1, 0, 5)
		f.command("PEXPIRE", f.l, 9000)
		f.acquire(a1, 0, 5).costs("LINDEX ZSCORE EXISTS HEXISTS HINCRBY PEXPIRE")
	}},
	{"5.2 no lease, no lock", func(f *fairPlayer) {
		f.call("try", fairCall{Owner: a1, Now: t0, Wait: fairWait})
		f.call("acquire", fairCall{Owner: a1, Now: t0, Wait: fairWait})
	}},
	{"ours: reentry goes by target and never shortens", func(f *fairPlayer) {
		f.acquire(a1, 0, fairWait)
		f.reenter(a1, 45000, 2)
		f.reenter(a1, 20000, 2)
		f.reenter(a1, 20000, 1)
		f.reenter(a1, 60000, 10)
		f.reenter(a1, 9000, 9) // 10 > 9 and 9000 < 60000 as numbers, not as texts
		f.reenter(a1, 9000, 0) // without a target
		f.command("PERSIST", f.l)
		f.reenter(a1, 30000, 12)
	}},
	{"ours: reentry without a hold is rejected", func(f *fairPlayer) {
		f.enqueue(in(a2, 0), in(a1, 10))
		f.reenter(a1, 30000, 2)
		f.acquire(a1, 0, 10)
		f.reenter(a2, 30000, 2)
	}},
	{"names with braces", func(f *fairPlayer) {
		plain := f.l
		for _, name := range []string{"{" + plain + "}x", "a{" + plain + "}", "замок " + plain, plain + "}"} {
			f.l = name
			f.acquire(a1, 0, fairWait)
			f.enqueue(in(a2, 10))
			f.release(a1, 0, 0)
			f.giveUp(a2, 0, fairWait)
		}
	}},
}

var fairQueues = []fairStory{
	{"5.3 the deadline is that of the waiter before it and the owner's own wait", func(f *fairPlayer) {
		f.acquire(a9, 0, fairWait)
		f.acquire(a1, 0, 400).costs("LINDEX EXISTS HEXISTS PTTL ZSCORE LINDEX ZADD RPUSH")
		f.acquire(a2, 70, 20)
		f.acquire(a3, -70, 1)
	}},
	{"5.3 an owner with a deadline is not queued again", func(f *fairPlayer) {
		f.enqueue(in(a2, 10), in(a3, 20))
		f.acquire(a3, 0, 500)
		f.set(t0+5, a4)
		f.acquire(a4, 0, 500)
		f.hold()
		f.command("PEXPIRE", f.l, fairLease)
		f.acquire(a4, 0, 500)
	}},
	{"5.3 an owner queued without a deadline is queued again", func(f *fairPlayer) {
		f.enqueue(in(a2, 10))
		f.push(a3)
		f.acquire(a3, 0, 500) // itself the last, so only the lock counts, which is free
		f.command("ZREM", codec.TimeoutKey(f.l), a2)
		f.acquire(a2, 0, 70)
	}},
	{"5.3 behind a waiter without a deadline only the lock counts", func(f *fairPlayer) {
		f.hold()
		f.command("PEXPIRE", f.l, fairLease)
		f.enqueue(in(a2, 10))
		f.push("dead")
		f.acquire(a3, 0, 500)
	}},
	{"5.3 behind an overdue waiter the reply is negative", func(f *fairPlayer) {
		f.enqueue(in(a2, 10), in(a3, -7))
		f.acquire(a4, 0, 500)
	}},
	{"5.3 overdue waiters leave before a new one is queued", func(f *fairPlayer) {
		f.hold()
		f.command("PEXPIRE", f.l, fairLease)
		f.enqueue(in(a2, -1), in(a3, 0))
		f.acquire(a4, 0, 500)
	}},
	{"5.3 an overdue waiter queues at the end", func(f *fairPlayer) {
		f.enqueue(in(a2, 0), in(a3, 10))
		f.acquire(a2, 0, 500)
		f.acquire(a2, 510, 500) // alone, it takes the lock
	}},
	{"5.9 each compares with its own clock", func(f *fairPlayer) {
		const ahead = 365 * 24 * 3600 * 1000 // of the server's
		f.enqueue(in(a2, ahead), entry{a3, 20})
		f.try(a4, ahead-1, 5)
		f.try(a4, ahead, 5)
		f.enqueue(entry{a2, 20})
		f.acquire(a3, 19-t0, 5)
	}},
}

var fairReleases = []fairStory{
	{"5.5 the head is notified and stays in the queue", func(f *fairPlayer) {
		f.acquire(a1, 0, fairWait)
		f.enqueue(in(a2, 10), in(a3, 20))
		f.release(a1, 0, 0).costs("LINDEX ZSCORE HGET DEL PUBLISH")
	}},
	{"5.5 no waiter, no message", func(f *fairPlayer) {
		f.acquire(a1, 0, fairWait)
		f.release(a1, 0, 0).costs("LINDEX HGET DEL")
		f.acquire(a1, 0, fairWait)
		f.releaseShared(a1, 0)
		f.acquire(a1, 0, fairWait)
		f.force(0)
	}},
	{"5.5 the first waiter that is not overdue is notified", func(f *fairPlayer) {
		f.acquire(a1, 0, fairWait)
		f.enqueue(in(a2, 0), in(a3, 20))
		f.release(a1, 0, 0)
		f.release(a1, 20, 0)
		f.enqueue(in(a2, 0), in(a3, 20))
		f.releaseShared(a1, 0)
	}},
	{"5.5 the whole lock goes, regardless of its fields", func(f *fairPlayer) {
		f.command("HSET", f.l, a1, "3", a2, "4")
		f.release(a1, 0, 0)
		f.command("HSET", f.l, a1, "1", a2, "4")
		f.releaseShared(a1, 0)
	}},
	{"ours: a release goes by target, late or repeated", func(f *fairPlayer) {
		f.command("HSET", f.l, a1, "10")
		f.enqueue(in(a2, 10))
		f.release(a1, 0, 11)
		f.release(a1, 0, 9) // 10 > 9 as numbers, not as texts
		f.command("PERSIST", f.l)
		f.release(a1, 0, 10)
		f.release(a1, 0, 9)
		f.release(a2, 0, 1)
		f.release(a1, 0, 0)
	}},
	{"ours: a release of a free lock notifies the head and says so", func(f *fairPlayer) {
		f.release(a1, 0, 0)
		f.enqueue(in(a2, 10), in(a3, 20))
		f.release(a1, 0, 0)
		f.release(a1, 0, 3)
	}},
	{"5.5 a latch makes a shared release repeatable", func(f *fairPlayer) {
		f.command("HSET", f.l, a1, "2")
		f.enqueue(in(a2, 10))
		f.releaseShared(a1, 0)
		f.releaseShared(a1, 0)
		f.command("DEL", protocol.LatchKey(f.l, requestID))
		f.releaseShared(a1, 0)
		f.releaseShared(a1, 10).costs("GET") // it does not even remove the overdue
		f.command("DEL", protocol.LatchKey(f.l, requestID))
		f.hold()
		f.releaseShared(a1, 0)
	}},
	{"ours: a shared release of a free lock notifies the head and says so", func(f *fairPlayer) {
		f.enqueue(in(a2, 10))
		f.releaseShared(a1, 0)
		f.releaseShared(a1, 0)
	}},
	{"5.6 force frees and notifies the head", func(f *fairPlayer) {
		f.enqueue(in(a2, 0), in(a3, 20), in(a4, 30))
		f.force(0)
		f.command("HSET", f.l, a1, "5")
		f.force(20)
	}},
}

// fairWrongTypes and fairInspected are vectors: the model has only keys of the right types.
func fairWrongTypes(l string) []vector {
	text, wrong := map[string]any{l: "no lock"}, failure("WRONGTYPE")
	list := map[string]any{codec.QueueKey(l): "no queue"}
	call := func(does string) vector {
		return filled(func(c *transport.Call) {
			fairScripts[does].fill(fairLock(l, "PUBLISH"), c, fairCall{Owner: a1, Now: t0, Wait: fairWait, Lease: fairLease, Latch: requestID})
		})
	}
	all := []vector{command("SET", l, "no lock").gives("OK", "", text)}
	for _, does := range []string{"try", "acquire", "reenter", "release", "releaseShared"} {
		all = append(all, call(does).gives(wrong, "", text))
	}
	return append(all,
		command("DEL", l).gives(int64(1), "", nothing).then("SET", codec.QueueKey(l), "no queue"),
		call("acquire").gives(wrong, "", list),
		call("giveUp").gives(wrong, "", list))
}

func fairInspected(l string) []vector {
	waits, places := codec.QueueKey(l), codec.TimeoutKey(l)
	one, both := map[string]any{waits: queue{ownerA}}, map[string]any{waits: queue{ownerA}, places: timeouts{ownerA: 5}}
	look := filled(func(c *transport.Call) { fairLock(l, "PUBLISH").Inspect(c, 1, "NUMSUB", 0, 0) })
	return []vector{
		command("RPUSH", waits, ownerA).gives(int64(1), "", one).then("ZADD", places, 5, ownerA),
		look.gives([]any{int64(-2), []any{}, []any{ownerA}, []any{ownerA, "5"}, []any{int64(0)}, int64(1)}, "", both),
	}
}
