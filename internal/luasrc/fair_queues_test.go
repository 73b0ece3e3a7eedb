package luasrc

import "github.com/redlatch/redlatch/codec"

// fairQueues are the stories of standing in line.
var fairQueues = []fairStory{
	{"5.3 each is given the deadline of the one before it and its own wait", eachBehindTheOther},
	{"5.3 an owner with a deadline is not queued again, wherever it stands", deadlineIsProofEnough},
	{"5.3 an owner queued without a deadline is queued a second time", placeWithoutDeadline},
	{"5.3 behind one without a deadline only the lock counts", behindNoDeadline},
	{"5.3 behind one that is overdue the reply is negative", behindOverdue},
	{"5.3 the dead make way for a new waiter", comesAfterTheDead},
	{"5.3 a waiter that was taken for dead queues at the end", queuesAnew},
	{"5.9 each compares with its own clock", clocksApart},
}

func eachBehindTheOther(f *telling) {
	f.acquire(ownerA9, t0, fairWait).gives(nil)
	f.leaves(f.heldBy(ownerA9, "1"))
	left := f.acquire(ownerA1, t0, 400).costs("LINDEX EXISTS HEXISTS PTTL ZSCORE LINDEX ZADD RPUSH").gives(about(fairLease))
	first := t0 + left + 400
	f.leaves(f.heldBy(ownerA9, "1"), f.entries(entry{ownerA1, first}))
	f.acquire(ownerA2, t0+70, 20).gives(first - t0 - 70)
	f.leaves(f.heldBy(ownerA9, "1"), f.entries(entry{ownerA1, first}, entry{ownerA2, first + 20}))
	f.acquire(ownerA3, t0-70, 1).gives(first + 20 - t0 + 70)
	f.leaves(f.heldBy(ownerA9, "1"), f.entries(entry{ownerA1, first}, entry{ownerA2, first + 20}, entry{ownerA3, first + 21}))
}

func deadlineIsProofEnough(f *telling) {
	f.enqueue(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 + 20})
	f.acquire(ownerA3, t0, 500).gives(int64(0))
	f.leaves(f.entries(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 + 20}))
	f.command("ZADD", codec.TimeoutKey(f.l), t0+5, ownerA4)
	f.acquire(ownerA4, t0, 500).gives(int64(0))
	f.leaves(f.queue(ownerA2, ownerA3),
		f.timeouts(timeouts{ownerA2: float64(t0 + 10), ownerA3: float64(t0 + 20), ownerA4: float64(t0 + 5)}))
	f.command("HSET", f.l, ownerA9, "1")
	f.command("PEXPIRE", f.l, fairLease)
	f.acquire(ownerA4, t0, 500).gives(about(fairLease))
	f.leaves(f.heldBy(ownerA9, "1"), f.queue(ownerA2, ownerA3),
		f.timeouts(timeouts{ownerA2: float64(t0 + 10), ownerA3: float64(t0 + 20), ownerA4: float64(t0 + 5)}))
}

func placeWithoutDeadline(f *telling) {
	f.enqueue(entry{ownerA2, t0 + 10})
	f.command("RPUSH", codec.QueueKey(f.l), ownerA3)
	// It is itself the last, so only the lock counts, which is free.
	f.acquire(ownerA3, t0, 500).gives(int64(-2))
	f.leaves(f.queue(ownerA2, ownerA3, ownerA3), f.timeouts(timeouts{ownerA2: float64(t0 + 10), ownerA3: float64(t0 + 498)}))
	f.command("ZREM", codec.TimeoutKey(f.l), ownerA2)
	f.acquire(ownerA2, t0, 70).gives(nil)
	f.leaves(f.heldBy(ownerA2, "1"), f.queue(ownerA3, ownerA3), f.timeouts(timeouts{ownerA3: float64(t0 + 428)}))
}

func behindNoDeadline(f *telling) {
	f.command("HSET", f.l, ownerA9, "1")
	f.command("PEXPIRE", f.l, fairLease)
	f.enqueue(entry{ownerA2, t0 + 10})
	f.command("RPUSH", codec.QueueKey(f.l), "dead")
	left := f.acquire(ownerA3, t0, 500).gives(about(fairLease))
	f.leaves(f.heldBy(ownerA9, "1"), f.queue(ownerA2, "dead", ownerA3),
		f.timeouts(timeouts{ownerA2: float64(t0 + 10), ownerA3: float64(t0 + left + 500)}))
}

func behindOverdue(f *telling) {
	f.enqueue(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 - 7})
	f.acquire(ownerA4, t0, 500).gives(int64(-7))
	f.leaves(f.entries(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 - 7}, entry{ownerA4, t0 + 493}))
}

func comesAfterTheDead(f *telling) {
	f.command("HSET", f.l, ownerA9, "1")
	f.command("PEXPIRE", f.l, fairLease)
	f.enqueue(entry{ownerA2, t0 - 1}, entry{ownerA3, t0})
	left := f.acquire(ownerA4, t0, 500).gives(about(fairLease))
	f.leaves(f.heldBy(ownerA9, "1"), f.entries(entry{ownerA4, t0 + left + 500}))
}

func queuesAnew(f *telling) {
	f.enqueue(entry{ownerA2, t0}, entry{ownerA3, t0 + 10})
	f.acquire(ownerA2, t0, 500).gives(int64(10))
	f.leaves(f.entries(entry{ownerA3, t0 + 10}, entry{ownerA2, t0 + 510}))
	// Alone, it takes the lock: it is dead only until it asks.
	f.acquire(ownerA2, t0+510, 500).gives(nil)
	f.leaves(f.heldBy(ownerA2, "1"))
}

// clocksApart: the server's clock is at no time that these callers know.
func clocksApart(f *telling) {
	const ahead = 365 * 24 * 3600 * 1000
	f.enqueue(entry{ownerA2, t0 + ahead}, entry{ownerA3, 20})
	f.try(ownerA4, t0+ahead-1, 5).gives(int64(1))
	f.leaves(f.entries(entry{ownerA2, t0 + ahead}, entry{ownerA3, 20}))
	f.try(ownerA4, t0+ahead, 5).gives(nil)
	f.leaves(f.heldBy(ownerA4, "1"))
	f.enqueue(entry{ownerA2, 20})
	f.acquire(ownerA3, 19, 5).gives(int64(1))
	f.leaves(f.heldBy(ownerA4, "1"), f.entries(entry{ownerA2, 20}, entry{ownerA3, 25}))
}
