package luasrc

import (
	"slices"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/reply"
)

var fairLeaves = []fairStory{
	{"5.4 waiters behind the leaver move up, others do not", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 10), in(a2, 500), in(a3, 600), in(a4, 700))
		f.giveUp(a2, 0, 490).costs("LRANGE ZRANGE ZREM ZADD ZREM LREM EXISTS")
		f.giveUp(a2, 0, 490)
		f.giveUp(a3, 1000, 100) // the overdue stay
	}},
	{"5.4 the last to leave leaves nothing", func(f *fairPlayer) {
		f.enqueue(in(a1, 10))
		f.giveUp(a1, 0, 10)
		f.giveUp(a1, 0, 10)
	}},
	{"5.4 the first of several places counts, and all are removed", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 10), in(a2, 20), in(a3, 30))
		f.push(a1, a4)
		f.giveUp(a1, 0, 5)
	}},
	{"5.4 an owner that is queued twice moves twice", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a2, 20), in(a1, 30), in(a3, 40), in(a4, 50))
		f.push(a3, a2)
		f.giveUp(a1, 0, 5)
	}},
	{"5.4 a waiter without a deadline gets a deadline long past", func(f *fairPlayer) {
		f.hold()
		f.push("before", a1, "orphan", a2, "orphan")
		f.set(t0+10, a1, t0+20, a2)
		f.giveUp(a1, 0, 5000)
		f.command("LPOP", codec.QueueKey(f.l))
		f.try(a3, 0, 1)
	}},
	{"5.4 deadlines fall by the wait regardless of their order", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a2, 90), in(a1, 80), in(a3, 10), in(a4, 20))
		f.giveUp(a1, 0, 5)
	}},
	{"5.4 fractions of deadlines survive", func(f *fairPlayer) {
		f.hold()
		for _, behind := range [][]any{{a1, a3, a2, a5}, {a1, a2, a3, a5}} {
			f.push(behind...)
			f.set("1795224888771.7", a2, "0.1", a3, "922337203685477", a5)
			f.giveUp(a1, 0, 3)
			f.clear()
		}
	}},
	{"5.4 an owner with only a deadline loses it", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a2, 20))
		f.set(t0+10, a1)
		f.giveUp(a1, 0, 5)
	}},
	{"5.4 while the lock is held no waiter is notified", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 10), in(a2, 20))
		f.giveUp(a1, 0, 5)
	}},
	{"ours: leaving a free lock notifies the head", func(f *fairPlayer) {
		f.enqueue(in(a1, 10), in(a2, 20), in(a3, 30), in(a4, 40))
		f.giveUp(a1, 0, 5)
		f.giveUp(a3, 0, 5) // the head may not have been woken
		f.giveUp(a5, 0, 5) // without a place
	}},
	{"ours: leaving a free lock notifies the overdue in front and the first that is not", func(f *fairPlayer) {
		f.enqueue(in(a1, 10), in(a2, -20), in(a3, 0), in(a4, 1), in(a5, 2))
		f.giveUp(a1, 0, 0)
		f.giveUp(a5, 1, 0)
		f.command("ZREM", codec.TimeoutKey(f.l), a2)
		f.giveUp(a4, 0, 0)
	}},
	{"ours: a waiter that becomes overdue is notified, and so is the next", func(f *fairPlayer) {
		f.enqueue(in(a1, 300), in(a2, 310), in(a3, 700))
		f.giveUp(a1, 20, 300)
	}},
	{"ours: one script removes several owners like sequential calls", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 1000), in(a2, 2000), in(a3, 3000), in(a4, 4000), in(a5, 5000))
		f.giveUp(a2, 0, 10, waiter{a4, 300}).costs("LRANGE ZRANGE ZREM ZADD ZREM LREM ZREM LREM EXISTS")
		f.giveUp(a1, 0, 1, waiter{a3, 2}, waiter{a5, 3})
	}},
	{"ours: owners that leave together need no order, and leave once", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 1000), in(a2, 2000), in(a3, 3000), in(a4, 4000))
		f.giveUp(a3, 0, 10, waiter{a9, 5000}, waiter{a1, 0}, waiter{a3, 700})
		f.push(a2, a5, a4)
		f.giveUp(a4, 0, 100, waiter{a2, 20})
	}},
	{"ours: owners that leave together at the end move none", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 1000), in(a2, 2000), in(a3, 3000))
		f.giveUp(a2, 0, 10, waiter{a3, 10}).costs("LRANGE ZREM LREM ZREM LREM EXISTS")
	}},
	{"ours: owners that leave together are not notified", func(f *fairPlayer) {
		f.enqueue(in(a1, 10), in(a2, 20), in(a3, 30), in(a4, 40), in(a5, 50))
		f.giveUp(a1, 0, 15, waiter{a2, 15}, waiter{a4, 1})
	}},
	{"ours: a waiter without a deadline falls by all the waits in front", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 10), in(a2, 20), in(a3, 30))
		f.command("ZREM", codec.TimeoutKey(f.l), a2)
		f.push("orphan", a3)
		f.giveUp(a1, 0, 5, waiter{a2, 6})
	}},
}

var fairHeartbeats = []fairStory{
	{"a heartbeat keeps own waiters above the preceding waits", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 10), in(a2, 20), in(a3, 40))
		f.beat(0, nil, 64, waiter{a2, 5000}).costs("PTTL LRANGE ZRANGE ZREM ZADD ZSCORE ZSCORE ZSCORE")
		f.leaves(lock(f.l, -1, a9, "1"), f.entries(in(a1, 10), in(a2, fairKeep+fairWait), in(a3, fairKeep+fairWait+20)))
	}},
	{"each own waiter subtracts its own wait", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 1), in(a2, 2), in(a3, 9), in(a4, 10))
		f.beat(0, nil, 64, waiter{a4, 80000}, waiter{a1, 5000}, waiter{a2, 300})
		f.leaves(lock(f.l, -1, a9, "1"), f.entries(in(a1, 15000), in(a2, 20000), in(a3, 20007), in(a4, 100007)))
	}},
	{"the wait of a follower is neither below 0 nor above the fair wait", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 0), in(a2, -50), in(a3, -20), in(a4, -20+300001), in(a5, 10))
		f.beat(0, nil, 64, waiter{a1, 1000}, waiter{a5, 7})
		f.leaves(lock(f.l, -1, a9, "1"), f.entries(in(a1, 15000), in(a2, 15000), in(a3, 15030), in(a4, 315030), in(a5, 316030)))
	}},
	{"unknown waits are assumed to be as long as the longest own wait", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 10), in(a2, 600010), in(a3, 1200010))
		f.beat(0, nil, 64, waiter{a3, 600000})
		f.leaves(lock(f.l, -1, a9, "1"), f.entries(in(a1, 10), in(a2, 600010), in(a3, fairKeep+1200000)))
	}},
	{"a waiter that was not raised moves none", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 20000), in(a2, 20001), in(a3, 20003))
		f.beat(0, nil, 64, waiter{a1, 5000}, waiter{a2, 1000}, waiter{a3, 5000})
	}},
	{"a heartbeat with nothing to change writes nothing", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 15000), in(a2, 15001), in(a3, 20001), in(a4, -5))
		f.beat(0, nil, 64, waiter{a1, 5000}, waiter{a3, 5000}).costs("PTTL LRANGE ZRANGE ZSCORE ZSCORE ZSCORE ZSCORE")
	}},
	{"a live head is kept while the lock is held", func(f *fairPlayer) {
		f.enqueue(in(a1, 10), in(a2, 20))
		f.beat(0, living(a1), 64) // a free lock is for the first to take
		f.leaves(f.entries(in(a1, 10), in(a2, 20)))
		f.hold()
		f.beat(0, living(a1), 64)
		f.beat(-1, living(a1), 64)
		f.leaves(lock(f.l, -1, a9, "1"), f.entries(in(a1, fairWait), in(a2, fairWait+10)))
		f.beat(fairWait, living(a1), 64, waiter{a1, 5}) // as its own waiter
		f.command("PEXPIRE", f.l, fairLease)
		f.beat(fairWait, living(a1), 0)
	}},
	{"living others are kept like its own", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 10), in(a2, 20), in(a3, 30))
		f.beat(0, []reply.Other{{Owner: a2, Wait: 5}, {Owner: a4, Wait: 5, Living: true}, {Owner: a3}}, 64)
		f.beat(0, []reply.Other{{Owner: a2, Wait: 5, Living: true}}, 64)
		f.command("DEL", f.l)
		f.beat(7, slices.Concat(living(a1), living(a2), living(a3)), 64)
	}},
	{"others are assumed to take off the observed wait, at least the fair wait", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 10), in(a2, 20), in(a3, 30), in(a4, 40))
		f.beat(0, []reply.Other{{Owner: a1, Wait: 400000}, {Owner: a2, Wait: 299999}, {Owner: a4, Wait: 350000}}, 64, waiter{a3, 5})
		f.clear()
		f.enqueue(in(a1, 10), in(a2, 20))
		f.beat(0, []reply.Other{{Owner: a1, Wait: 400000}}, 64, waiter{a1, 5}, waiter{a2, 1})
	}},
	{"own overdue waiters are kept, and none is removed", func(f *fairPlayer) {
		f.enqueue(in(a1, -5000), in(a2, -4000), in(a3, -3000))
		f.beat(0, nil, 64, waiter{a2, 100})
	}},
	{"a waiter without a deadline is skipped", func(f *fairPlayer) {
		f.enqueue(in(a1, 10))
		f.push("dead")
		f.enqueue(in(a2, 50))
		f.beat(0, nil, 64, waiter{a1, 5})
	}},
	{"a first without a deadline does not count as a predecessor", func(f *fairPlayer) {
		f.hold()
		f.push("dead")
		f.enqueue(in(a1, 10), in(a2, 20))
		f.beat(0, living("dead"), 64)
		f.beat(0, nil, 64, waiter{a2, 5})
		f.beat(0, living(a1), 0)
	}},
	{"the first of several places counts", func(f *fairPlayer) {
		f.enqueue(in(a1, 10), in(a2, 30))
		f.push(a1)
		f.enqueue(in(a3, 60), in(a4, 61))
		f.beat(0, nil, 64, waiter{a1, 5}, waiter{a4, 5})
	}},
	{"owners without place or deadline are missing", func(f *fairPlayer) {
		f.enqueue(in(a1, 10))
		f.push(a2)
		f.set(t0+20, a3)
		f.beat(0, nil, 64, waiter{a3, 5}, waiter{a2, 5}, waiter{a1, 5}, waiter{a4, 5}, waiter{a4, 5})
	}},
	{"a heartbeat returns as many places as requested", func(f *fairPlayer) {
		f.beat(0, nil, 64).costs("PTTL LRANGE ZRANGE")
		f.enqueue(in(a1, 10), in(a2, 20), in(a3, 30))
		for window := range 5 {
			f.beat(0, nil, window)
		}
		f.beat(0, nil, 1, waiter{a3, 5})
	}},
	{"a heartbeat returns the lock's remaining time", func(f *fairPlayer) {
		f.beat(0, nil, 64)
		f.hold()
		f.beat(0, nil, 64)
		f.command("PEXPIRE", f.l, fairLease)
		f.beat(0, nil, 64)
	}},
	{"fractions of deadlines survive a heartbeat", func(f *fairPlayer) {
		f.push(a5, a1, a2)
		f.set("0.1", a5, "1795224888771.25", a1, "1795224888781.5", a2)
		f.beat(0, nil, 0, waiter{a1, 5})
	}},
	{"heartbeats of several processes stabilize", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 1), in(a2, 2), in(a3, 3), in(a4, 4))
		one, two := []waiter{{a1, fairWait}, {a3, 5000}}, []waiter{{a2, fairWait}, {a4, 5000}}
		f.beat(0, nil, 64, one...)
		for _, mine := range [][]waiter{two, one, two} {
			f.beat(0, nil, 64, mine...)
			f.leaves(lock(f.l, -1, a9, "1"), f.entries(in(a1, 15000), in(a2, 315000), in(a3, 615000), in(a4, 915000)))
		}
	}},
}

var fairEvictions = []fairStory{
	{"a dead first is evicted while the lock is held", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 515000), in(a2, 600000), in(a3, 700000))
		f.evict(in(a1, 515000)).costs("PTTL LINDEX ZSCORE ZREM LPOP ZRANGE ZRANGE ZADD")
		f.leaves(lock(f.l, -1, a9, "1"), f.entries(in(a2, 100000), in(a3, 200000)))
		f.evict(in(a1, 515000)).costs("PTTL LINDEX") // repeated
	}},
	{"deadlines fall by the part beyond the lease and a heartbeat's keep", func(f *fairPlayer) {
		f.hold()
		f.command("PEXPIRE", f.l, 1000000)
		f.enqueue(in(a1, 2015000), in(a2, 5000000), in(a3, 5000007))
		f.evict(in(a1, 2015000))
	}},
	{"a deadline that is not too late takes nothing off", func(f *fairPlayer) {
		f.hold()
		for _, late := range []int64{-5, 0, 14999, 15000} {
			f.enqueue(in(a1, late), in(a2, 700000))
			f.evict(in(a1, late)).costs("PTTL LINDEX ZSCORE ZREM LPOP")
			f.clear()
		}
		f.enqueue(in(a1, 15001), in(a2, 700000))
		f.evict(in(a1, 15001))
	}},
	{"the earliest deadline keeps a heartbeat's keep", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 515000), in(a2, 100000), in(a3, 300000))
		f.evict(in(a1, 515000))
		f.clear()
		f.enqueue(in(a1, 515000), in(a2, -10), in(a3, 300000), in(a4, 100000))
		f.evict(in(a1, 515000))
		f.set(t0+7, a4, t0+515000, a1)
		f.command("LPUSH", codec.QueueKey(f.l), a1)
		f.evict(in(a1, 515000))
	}},
	{"several dead count what those before them took off", func(f *fairPlayer) {
		f.hold()
		all := []entry{in(a1, 115000), in(a2, 50000), in(a3, 315000), in(a4, 600000), in(a5, 600100)}
		f.enqueue(all...)
		f.evict(all[:3]...)
		f.evict(in(a4, 300000), in(a5, 300100)).costs("PTTL LINDEX ZSCORE ZREM LPOP LINDEX ZSCORE ZREM LPOP ZRANGE ZRANGE")
		f.enqueue(all...)
		f.evict(all[:2]...)
	}},
	{"an eviction ends at the first difference", func(f *fairPlayer) {
		f.hold()
		all := []entry{in(a1, 10), in(a2, 20), in(a3, 30)}
		f.enqueue(all...)
		for _, pairs := range [][]string{
			{},
			{a2, "1795224888791"},
			{a2, "1795224888791", a1, "1795224888781"},
			{a1, "1795224888780", a1, "1795224888781"},
			{a1, "1795224888781.0"},
			{a1, " 1795224888781"},
			{a1, ""},
		} {
			f.evictAs(pairs...)
			f.leaves(lock(f.l, -1, a9, "1"), f.entries(all...))
		}
		f.evict(all[0], in(a2, 21), all[1], all[2])
		f.evict(all[1], all[0], all[2])
		f.evict(all[2], all[2])
		f.evict(all[2]).costs("PTTL LINDEX")
	}},
	{"a waiter without a deadline can be evicted", func(f *fairPlayer) {
		f.hold()
		f.push("dead")
		f.enqueue(in(a1, 515000), in(a2, 600000))
		f.evictAs("dead", "0")
		f.evict(entry{"dead", none}, in(a1, 515000))
	}},
	{"if the lock is free the new first is notified", func(f *fairPlayer) {
		f.enqueue(in(a1, 115000), in(a2, 200000), in(a3, 300000))
		f.evict(in(a1, 115000)).costs("PTTL LINDEX ZSCORE ZREM LPOP ZRANGE ZRANGE ZADD LRANGE PUBLISH ZSCORE")
		f.evict(in(a2, 100000), in(a3, 200000))
	}},
	{"and so are the overdue up to the first that is not", func(f *fairPlayer) {
		f.enqueue(in(a1, 5000), in(a2, -10), in(a3, 0), in(a4, 1))
		f.evict(in(a1, 5000))
		f.command("ZREM", codec.TimeoutKey(f.l), a3)
		f.evict(in(a2, -10))
	}},
	{"an eviction of none notifies none", func(f *fairPlayer) {
		f.enqueue(in(a1, 10), in(a2, 20))
		f.evict(in(a1, 11)).costs("PTTL LINDEX ZSCORE")
	}},
	{"of several places each is evicted by itself", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 10))
		f.push(a1)
		f.enqueue(in(a2, 20))
		f.evict(in(a1, 10), in(a1, 10))
		f.evict(entry{a1, none})
	}},
	{"deadlines without a place also fall", func(f *fairPlayer) {
		f.hold()
		f.enqueue(in(a1, 115000))
		f.push("no deadline")
		f.set(5, a5)
		f.evict(in(a1, 115000))
	}},
	{"fractions of deadlines survive an eviction", func(f *fairPlayer) {
		f.hold()
		f.push(a1, a2, a3)
		f.set("1795225003771.25", a1, "1795225003771.75", a2, "922337203685477", a3)
		f.evictAs(a1, "1795225003771.25")
	}},
	{"a nudge notifies the first of a free lock", func(f *fairPlayer) {
		f.nudge(a1).costs("EXISTS LINDEX")
		f.enqueue(in(a1, -10), in(a2, 20))
		f.nudge(a1).costs("EXISTS LINDEX PUBLISH")
		f.nudge(a2)
		f.hold()
		f.nudge(a1).costs("EXISTS")
	}},
}
