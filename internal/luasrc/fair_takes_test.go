package luasrc

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// fairTakes are the stories of taking the lock and of entering it again.
var fairTakes = []fairStory{
	{"5.1 a deadline that is now has passed, one a millisecond later has not", deadlineIsNow},
	{"5.1 the dead are removed from the head on, and only there", deadInARow},
	{"5.1 a head without a deadline protects the dead behind it", deadBehindNoDeadline},
	{"5.2 a try takes what is free for it", tryTakes},
	{"5.2 a try never queues", tryNeverQueues},
	{"5.2 an owner that takes the lock leaves one place and its deadline", takeLeavesOnePlace},
	{"5.2 an owner with a deadline but no place takes a lock without a queue", takeWithoutPlace},
	{"5.2 the deadlines of all fall by the wait, whoever they are", takeMovesAll},
	{"5.2 fractions of deadlines survive", takeKeepsFractions},
	{"5.2 entering again renews the lease, and asks for no place", enterAgain},
	{"5.2 no lease, no lock", leaseOfNothing},
	{"ours: re-entry goes by target and never shortens", reenterFair},
	{"ours: re-entry refuses when the hold is gone", reenterFairRefused},
	{"keys of other types", fairWrongTypes},
	{"names with braces", fairBraces},
}

func deadlineIsNow(f *telling) {
	f.enqueue(entry{ownerA2, t0})
	f.try(ownerA1, t0-1, fairWait).gives(int64(1))
	f.leaves(f.entries(entry{ownerA2, t0}))
	f.try(ownerA1, t0, fairWait).gives(nil)
	f.leaves(f.heldBy(ownerA1, "1"))
}

// removals are one call of each script that removes the dead, to a lock that is
// held by ownerA9 for ever; none of them changes anything else.
func (f *telling) removals() []func(now int64) {
	return []func(now int64){
		func(now int64) { f.try(ownerA5, now, 7).gives(int64(1)) },
		func(now int64) { f.acquire(ownerA4, now, 7).gives(int64(0)) },
		func(now int64) { f.reenter(ownerA9, now, 7, 1).gives(int64(1)) },
		func(now int64) { f.release(ownerA9, now, 1).gives(int64(0)) },
		func(now int64) { f.release(ownerA5, now, 0).gives(nil) },
		func(now int64) { f.releaseShared(ownerA5, now).gives(nil) },
	}
}

func deadInARow(f *telling) {
	held := f.hold()
	// The second place of one that is removed stays, without a deadline.
	enqueue := func() {
		f.enqueue(entry{ownerA1, t0 - 9}, entry{ownerA2, t0 - 5}, entry{ownerA3, t0 + 1}, entry{ownerA4, t0 - 7})
		f.command("RPUSH", codec.QueueKey(f.l), ownerA2)
	}
	rest := also(f.queue(ownerA3, ownerA4, ownerA2), f.timeouts(timeouts{ownerA3: float64(t0 + 1), ownerA4: float64(t0 - 7)}))
	for _, run := range f.removals() {
		enqueue()
		run(t0)
		f.leaves(held, rest)
		f.command("DEL", codec.QueueKey(f.l), codec.TimeoutKey(f.l))
	}
	enqueue()
	f.force(t0).gives(int64(1))
	f.tells(ownerA3)
	f.leaves(rest)
	f.force(t0 + 1).gives(int64(0))
	f.leaves(f.queue(ownerA2))
}

func deadBehindNoDeadline(f *telling) {
	held := f.hold()
	f.command("RPUSH", codec.QueueKey(f.l), "dead")
	f.enqueue(entry{ownerA4, t0 - 5})
	queued := also(f.queue("dead", ownerA4), f.timeouts(timeouts{ownerA4: float64(t0 - 5)}))
	for _, run := range f.removals() {
		run(t0)
		f.leaves(held, queued)
	}
	f.force(t0).gives(int64(1))
	f.tells("dead")
	f.leaves(queued)
	f.try(ownerA4, t0, fairWait).gives(int64(1))
	f.leaves(queued)
}

func tryTakes(f *telling) {
	f.try(ownerA1, t0, fairWait).costs("LINDEX EXISTS LPOP ZREM ZRANGE HSET PEXPIRE")
	f.leaves(f.heldBy(ownerA1, "1"))
	f.command("DEL", f.l)
	f.enqueue(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 + 20}, entry{ownerA4, t0 + 30})
	f.try(ownerA3, t0, fairWait).gives(int64(1))
	f.leaves(f.entries(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 + 20}, entry{ownerA4, t0 + 30}))
	f.try(ownerA2, t0, 15).gives(nil)
	f.leaves(f.heldBy(ownerA2, "1"), f.entries(entry{ownerA3, t0 + 5}, entry{ownerA4, t0 + 15}))
}

func tryNeverQueues(f *telling) {
	f.enqueue(entry{ownerA2, t0 + 10})
	f.try(ownerA1, t0, fairWait).gives(int64(1))
	f.leaves(f.entries(entry{ownerA2, t0 + 10}))
	f.command("HSET", f.l, ownerA9, "1")
	f.try(ownerA1, t0+10, fairWait).gives(int64(1))
	f.leaves(lock(f.l, -1, ownerA9, "1"))
}

func takeLeavesOnePlace(f *telling) {
	f.enqueue(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 + 20})
	f.command("RPUSH", codec.QueueKey(f.l), ownerA2)
	f.acquire(ownerA2, t0, 5).gives(nil)
	f.leaves(f.heldBy(ownerA2, "1"), f.queue(ownerA3, ownerA2), f.timeouts(timeouts{ownerA3: float64(t0 + 15)}))
}

func takeWithoutPlace(f *telling) {
	f.command("ZADD", codec.TimeoutKey(f.l), t0+10, ownerA2)
	f.acquire(ownerA2, t0, 5).gives(nil)
	f.leaves(f.heldBy(ownerA2, "1"))
	f.command("ZADD", codec.TimeoutKey(f.l), t0+10, ownerA3)
	f.try(ownerA3, t0, 5).gives(int64(1))
	f.leaves(f.heldBy(ownerA2, "1"), f.timeouts(timeouts{ownerA3: float64(t0 + 10)}))
}

func takeMovesAll(f *telling) {
	f.enqueue(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 + 4000})
	f.command("ZADD", codec.TimeoutKey(f.l), 7, "no place", -100, "long past")
	f.command("RPUSH", codec.QueueKey(f.l), "no deadline")
	f.acquire(ownerA2, t0, 5000).gives(nil)
	f.leaves(f.heldBy(ownerA2, "1"), f.queue(ownerA3, "no deadline"), f.timeouts(timeouts{
		ownerA3: float64(t0 - 1000), "no place": -4993, "long past": -5100,
	}))
}

func takeKeepsFractions(f *telling) {
	// No constants, with which Go would calculate more exactly than a server.
	late, small, earlier := 1795224888771.7, 0.3, float64(t0-9000000)
	moved := timeouts{ownerA2: late - 1000, ownerA3: small - 1000, ownerA4: -1002.75, ownerA5: 922337203684477}
	for _, take := range []func(owner string, now, wait int64) *telling{f.try, f.acquire} {
		f.command("DEL", f.l)
		f.command("ZADD", codec.TimeoutKey(f.l), "1795224888771.7", ownerA2, "0.3", ownerA3, "-2.75", ownerA4, "922337203685477", ownerA5)
		take(ownerA1, t0, 1000).gives(nil)
		f.leaves(f.heldBy(ownerA1, "1"), f.timeouts(moved))
	}
	f.command("RPUSH", codec.QueueKey(f.l), ownerA2)
	// What the last one has left, 8999000.7 ms, is returned without its fraction.
	f.acquire(ownerA9, t0-9000000, 250).gives(int64(8999000))
	moved[ownerA9] = late - 1000 - earlier + 250 + earlier
	f.leaves(f.heldBy(ownerA1, "1"), f.queue(ownerA2, ownerA9), f.timeouts(moved))
}

func enterAgain(f *telling) {
	f.try(ownerA1, t0, fairWait).gives(nil)
	f.leaves(f.heldBy(ownerA1, "1"))
	f.enqueue(entry{ownerA2, t0 + 10}, entry{ownerA1, t0 + 20})
	f.command("PEXPIRE", f.l, 90000)
	f.try(ownerA1, t0, 5).gives(nil)
	f.leaves(f.heldBy(ownerA1, "2"), f.entries(entry{ownerA2, t0 + 10}, entry{ownerA1, t0 + 20}))
	f.command("PEXPIRE", f.l, 9000)
	f.acquire(ownerA1, t0, 5).costs("LINDEX ZSCORE EXISTS HEXISTS HINCRBY PEXPIRE")
	f.leaves(f.heldBy(ownerA1, "3"), f.entries(entry{ownerA2, t0 + 10}, entry{ownerA1, t0 + 20}))
}

func leaseOfNothing(f *telling) {
	f.fair("try without a lease", func(l *Fair, c *transport.Call) { l.Try(c, t0, ownerA1, fairWait, 0) }).gives(nil)
	f.leaves()
	f.fair("acquire without a lease", func(l *Fair, c *transport.Call) { l.Acquire(c, t0, ownerA1, fairWait, 0) }).gives(nil)
	f.leaves()
}

func reenterFair(f *telling) {
	f.acquire(ownerA1, t0, fairWait).gives(nil)
	f.leaves(f.heldBy(ownerA1, "1"))
	f.reenter(ownerA1, t0, 45000, 2).gives(int64(1))
	f.leaves(lock(f.l, 45000, ownerA1, "2"))
	for _, late := range []int64{2, 1} {
		f.reenter(ownerA1, t0, 20000, late).gives(int64(1))
		f.leaves(lock(f.l, 45000, ownerA1, "2"))
	}
	f.reenter(ownerA1, t0, 60000, 10).gives(int64(1))
	f.leaves(lock(f.l, 60000, ownerA1, "10"))
	// Ten is more than nine, and 9000 less than 60000, as numbers, not as texts.
	f.reenter(ownerA1, t0, 9000, 9).gives(int64(1))
	f.leaves(lock(f.l, 60000, ownerA1, "10"))
	// Without a target it is one more.
	f.reenter(ownerA1, t0, 9000, 0).gives(int64(1))
	f.leaves(lock(f.l, 60000, ownerA1, "11"))
	f.command("PERSIST", f.l)
	f.reenter(ownerA1, t0, 30000, 12).gives(int64(1))
	f.leaves(lock(f.l, -1, ownerA1, "12"))
}

func reenterFairRefused(f *telling) {
	f.enqueue(entry{ownerA2, t0}, entry{ownerA1, t0 + 10})
	f.reenter(ownerA1, t0, 30000, 2).gives(nil)
	f.leaves(f.entries(entry{ownerA1, t0 + 10}))
	f.acquire(ownerA1, t0, 10).gives(nil)
	f.leaves(f.heldBy(ownerA1, "1"))
	f.reenter(ownerA2, t0, 30000, 2).gives(nil)
	f.leaves(f.heldBy(ownerA1, "1"))
}

func fairWrongTypes(f *telling) {
	f.command("SET", f.l, "no lock")
	text := map[string]any{f.l: "no lock"}
	wrong := failure("WRONGTYPE")
	f.try(ownerA1, t0, fairWait).gives(wrong)
	f.leaves(text)
	f.acquire(ownerA1, t0, fairWait).gives(wrong)
	f.leaves(text)
	f.reenter(ownerA1, t0, 30000, 2).gives(wrong)
	f.leaves(text)
	f.release(ownerA1, t0, 0).gives(wrong)
	f.leaves(text)
	f.releaseShared(ownerA1, t0).gives(wrong)
	f.leaves(text)
	f.command("DEL", f.l)
	f.command("SET", codec.QueueKey(f.l), "no queue")
	f.acquire(ownerA1, t0, fairWait).gives(wrong)
	f.leaves(map[string]any{codec.QueueKey(f.l): "no queue"})
	f.giveUp(ownerA1, t0, fairWait).gives(wrong)
	f.leaves(map[string]any{codec.QueueKey(f.l): "no queue"})
}

func fairBraces(f *telling) {
	plain := f.l
	for _, name := range []string{"{" + plain + "}x", "a{" + plain + "}", "замок " + plain, plain + "}"} {
		f.l = name
		f.acquire(ownerA1, t0, fairWait).gives(nil)
		f.leaves(f.heldBy(ownerA1, "1"))
		f.enqueue(entry{ownerA2, t0 + 10})
		f.release(ownerA1, t0, 0).gives(int64(1))
		f.tells(ownerA2)
		f.leaves(f.entries(entry{ownerA2, t0 + 10}))
		f.giveUp(ownerA2, t0, fairWait).gives(nil)
		f.leaves()
	}
	f.l = plain
}
