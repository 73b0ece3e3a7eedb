package luasrc

import (
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
)

// fairEvictions are the stories of taking out the dead.
var fairEvictions = []fairStory{
	{"ours: a dead first is taken out while the lock is held", evictHeld},
	{"ours: deadlines fall by what was later than the lease and a heartbeat need", evictBeforeTheLeaseEnds},
	{"ours: a deadline that is not too late takes nothing off", evictTakesNothing},
	{"ours: what falls leaves the soonest what a heartbeat keeps", evictLeavesTheSoonest},
	{"ours: several dead count what those before them took off", evictSeveral},
	{"ours: an eviction ends at the first that is not as it was seen", evictStops},
	{"ours: a waiter without a deadline can be evicted", evictWithoutDeadline},
	{"ours: when the lock is free the new first is notified", evictFree},
	{"ours: and so are the overdue up to the first that is not", evictFreeBeforeTheOverdue},
	{"ours: an eviction of none notifies none", evictNone},
	{"ours: of several places each is taken out by itself", evictSeveralPlaces},
	{"ours: deadlines without a place fall, too, as when the lock is taken", evictMovesDeadlinesWithoutEntry},
	{"ours: fractions of deadlines survive an eviction", evictKeepsFractions},
}

// fairNudges are the stories of telling the first once more.
var fairNudges = []fairStory{{"ours: a nudge tells the first of a free lock", nudgeFree}}

// gone is the reply of an eviction of these.
func gone(owners ...any) []any { return append([]any{}, owners...) }

func evictHeld(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 515000}, entry{ownerA2, t0 + 600000}, entry{ownerA3, t0 + 700000})
	f.evict(t0, entry{ownerA1, t0 + 515000}).costs("PTTL LINDEX ZSCORE ZREM LPOP ZRANGE ZRANGE ZADD").gives(gone(ownerA1))
	f.leaves(held, f.entries(entry{ownerA2, t0 + 100000}, entry{ownerA3, t0 + 200000}))
	// Sent again, it finds another in front.
	f.evict(t0, entry{ownerA1, t0 + 515000}).costs("PTTL LINDEX").gives(gone())
	f.leaves(held, f.entries(entry{ownerA2, t0 + 100000}, entry{ownerA3, t0 + 200000}))
}

// evictBeforeTheLeaseEnds: the lease has a little less left each time one looks, so
// what falls shows in the present positions.
func evictBeforeTheLeaseEnds(f *telling) {
	const lease = 1000000
	f.command("HSET", f.l, ownerA9, "1")
	f.command("PEXPIRE", f.l, lease)
	f.enqueue(entry{ownerA1, t0 + 2015000}, entry{ownerA2, t0 + 5000000}, entry{ownerA3, t0 + 5000007})
	f.evict(t0, entry{ownerA1, t0 + 2015000}).gives(gone(ownerA1))
	second := f.deadlineOf(ownerA2)
	if left := second - t0 - 3000000; !about(lease).covers(left) {
		f.err = errors.Join(f.err, fmt.Errorf("counted with %d ms left of a lease of %d", left, lease))
	}
	f.leaves(lock(f.l, lease, ownerA9, "1"), f.entries(entry{ownerA2, second}, entry{ownerA3, second + 7}))
}

// deadlineOf reads a deadline in the middle of a step.
func (f *telling) deadlineOf(owner string) int64 {
	if f.err != nil {
		return 0
	}
	deadline, err := redis.Int64(f.conn.Do("ZSCORE", codec.TimeoutKey(f.l), owner))
	f.err = err
	return deadline
}

func evictTakesNothing(f *telling) {
	held := f.hold()
	for _, late := range []int64{-5, 0, 14999, 15000} {
		f.enqueue(entry{ownerA1, t0 + late}, entry{ownerA2, t0 + 700000})
		f.evict(t0, entry{ownerA1, t0 + late}).costs("PTTL LINDEX ZSCORE ZREM LPOP").gives(gone(ownerA1))
		f.leaves(held, f.entries(entry{ownerA2, t0 + 700000}))
		f.command("DEL", codec.QueueKey(f.l), codec.TimeoutKey(f.l))
	}
	f.enqueue(entry{ownerA1, t0 + 15001}, entry{ownerA2, t0 + 700000})
	f.evict(t0, entry{ownerA1, t0 + 15001}).gives(gone(ownerA1))
	f.leaves(held, f.entries(entry{ownerA2, t0 + 699999}))
}

func evictSeveral(f *telling) {
	held := f.hold()
	all := []entry{{ownerA1, t0 + 115000}, {ownerA2, t0 + 50000}, {ownerA3, t0 + 315000}, {ownerA4, t0 + 600000}, {ownerA5, t0 + 600100}}
	f.enqueue(all...)
	f.evict(t0, all[:3]...).gives(gone(ownerA1, ownerA2, ownerA3))
	f.leaves(held, f.entries(entry{ownerA4, t0 + 300000}, entry{ownerA5, t0 + 300100}))
	f.evict(t0, entry{ownerA4, t0 + 300000}, entry{ownerA5, t0 + 300100}).
		costs("PTTL LINDEX ZSCORE ZREM LPOP LINDEX ZSCORE ZREM LPOP ZRANGE ZRANGE").gives(gone(ownerA4, ownerA5))
	f.leaves(held)
	// One that is less late than those before it gives nothing back.
	f.enqueue(all...)
	f.evict(t0, all[:2]...).gives(gone(ownerA1, ownerA2))
	f.leaves(held, f.entries(entry{ownerA3, t0 + 215000}, entry{ownerA4, t0 + 500000}, entry{ownerA5, t0 + 500100}))
}

func evictStops(f *telling) {
	held := f.hold()
	all := []entry{{ownerA1, t0 + 10}, {ownerA2, t0 + 20}, {ownerA3, t0 + 30}}
	f.enqueue(all...)
	for _, pairs := range [][]string{
		{},
		{ownerA2, "1795224888791"},
		{ownerA2, "1795224888791", ownerA1, "1795224888781"},
		{ownerA1, "1795224888780", ownerA1, "1795224888781"},
		{ownerA1, "1795224888781.0"},
		{ownerA1, " 1795224888781"},
		{ownerA1, ""},
	} {
		f.evictAs(t0, pairs...).gives(gone())
		f.leaves(held, f.entries(all...))
	}
	f.evict(t0, all[0], entry{ownerA2, t0 + 21}, all[1], all[2]).gives(gone(ownerA1))
	f.leaves(held, f.entries(all[1], all[2]))
	f.evict(t0, all[1], all[0], all[2]).gives(gone(ownerA2))
	f.leaves(held, f.entries(all[2]))
	f.evict(t0, all[2], all[2]).gives(gone(ownerA3))
	f.leaves(held)
	f.evict(t0, all[2]).costs("PTTL LINDEX").gives(gone())
	f.leaves(held)
}

func evictWithoutDeadline(f *telling) {
	held := f.hold()
	f.command("RPUSH", codec.QueueKey(f.l), "dead")
	f.enqueue(entry{ownerA1, t0 + 515000}, entry{ownerA2, t0 + 600000})
	f.evictAs(t0, "dead", "0").gives(gone())
	f.leaves(held, f.queue("dead", ownerA1, ownerA2), f.timeouts(timeouts{ownerA1: float64(t0 + 515000), ownerA2: float64(t0 + 600000)}))
	f.evict(t0, entry{"dead", none}, entry{ownerA1, t0 + 515000}).gives(gone("dead", ownerA1))
	f.leaves(held, f.entries(entry{ownerA2, t0 + 100000}))
}

func evictFree(f *telling) {
	f.enqueue(entry{ownerA1, t0 + 115000}, entry{ownerA2, t0 + 200000}, entry{ownerA3, t0 + 300000})
	f.evict(t0, entry{ownerA1, t0 + 115000}).
		costs("PTTL LINDEX ZSCORE ZREM LPOP ZRANGE ZRANGE ZADD LRANGE PUBLISH ZSCORE").gives(gone(ownerA1))
	f.tells(ownerA2)
	f.leaves(f.entries(entry{ownerA2, t0 + 100000}, entry{ownerA3, t0 + 200000}))
	f.evict(t0, entry{ownerA2, t0 + 100000}, entry{ownerA3, t0 + 200000}).gives(gone(ownerA2, ownerA3))
	f.leaves()
}

func evictFreeBeforeTheOverdue(f *telling) {
	f.enqueue(entry{ownerA1, t0 + 5000}, entry{ownerA2, t0 - 10}, entry{ownerA3, t0}, entry{ownerA4, t0 + 1})
	f.evict(t0, entry{ownerA1, t0 + 5000}).gives(gone(ownerA1))
	f.tells(ownerA2, ownerA3, ownerA4)
	f.leaves(f.entries(entry{ownerA2, t0 - 10}, entry{ownerA3, t0}, entry{ownerA4, t0 + 1}))
	f.command("ZREM", codec.TimeoutKey(f.l), ownerA3)
	f.evict(t0, entry{ownerA2, t0 - 10}).gives(gone(ownerA2))
	f.tells(ownerA3)
	f.leaves(f.queue(ownerA3, ownerA4), f.timeouts(timeouts{ownerA4: float64(t0 + 1)}))
}

// evictLeavesTheSoonest: a dead first can be due later than those behind it.
func evictLeavesTheSoonest(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 515000}, entry{ownerA2, t0 + 100000}, entry{ownerA3, t0 + 300000})
	f.evict(t0, entry{ownerA1, t0 + 515000}).gives(gone(ownerA1))
	f.leaves(held, f.entries(entry{ownerA2, t0 + 15000}, entry{ownerA3, t0 + 215000}))
	f.command("DEL", codec.QueueKey(f.l), codec.TimeoutKey(f.l))
	f.enqueue(entry{ownerA1, t0 + 515000}, entry{ownerA2, t0 - 10}, entry{ownerA3, t0 + 300000}, entry{ownerA4, t0 + 100000})
	f.evict(t0, entry{ownerA1, t0 + 515000}).gives(gone(ownerA1))
	f.leaves(held, f.entries(entry{ownerA2, t0 - 85010}, entry{ownerA3, t0 + 215000}, entry{ownerA4, t0 + 15000}))
	f.command("ZADD", codec.TimeoutKey(f.l), t0+7, ownerA4)
	f.command("LPUSH", codec.QueueKey(f.l), ownerA1)
	f.command("ZADD", codec.TimeoutKey(f.l), t0+515000, ownerA1)
	f.evict(t0, entry{ownerA1, t0 + 515000}).gives(gone(ownerA1))
	f.leaves(held, f.entries(entry{ownerA2, t0 - 85010}, entry{ownerA3, t0 + 215000}, entry{ownerA4, t0 + 7}))
}

func evictNone(f *telling) {
	f.enqueue(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20})
	f.evict(t0, entry{ownerA1, t0 + 11}).costs("PTTL LINDEX ZSCORE").gives(gone())
	f.leaves(f.entries(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20}))
}

func evictSeveralPlaces(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 10})
	f.command("RPUSH", codec.QueueKey(f.l), ownerA1)
	f.enqueue(entry{ownerA2, t0 + 20})
	f.evict(t0, entry{ownerA1, t0 + 10}, entry{ownerA1, t0 + 10}).gives(gone(ownerA1))
	f.leaves(held, f.queue(ownerA1, ownerA2), f.timeouts(timeouts{ownerA2: float64(t0 + 20)}))
	f.evict(t0, entry{ownerA1, none}).gives(gone(ownerA1))
	f.leaves(held, f.entries(entry{ownerA2, t0 + 20}))
}

func evictMovesDeadlinesWithoutEntry(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 115000})
	f.command("RPUSH", codec.QueueKey(f.l), "no deadline")
	f.command("ZADD", codec.TimeoutKey(f.l), 5, ownerA5)
	f.evict(t0, entry{ownerA1, t0 + 115000}).gives(gone(ownerA1))
	f.leaves(held, f.queue("no deadline"), f.timeouts(timeouts{ownerA5: -99995}))
}

func evictKeepsFractions(f *telling) {
	held := f.hold()
	f.command("RPUSH", codec.QueueKey(f.l), ownerA1, ownerA2, ownerA3)
	f.command("ZADD", codec.TimeoutKey(f.l), "1795225003771.25", ownerA1, "1795225003771.75", ownerA2, "922337203685477", ownerA3)
	f.evictAs(t0, ownerA1, "1795225003771.25").gives(gone(ownerA1))
	f.leaves(held, f.queue(ownerA2, ownerA3),
		f.timeouts(timeouts{ownerA2: float64(t0+15000) + 0.5, ownerA3: 922337203585476.75}))
}

func nudgeFree(f *telling) {
	f.nudge(ownerA1).costs("EXISTS LINDEX").gives(int64(0))
	f.leaves()
	f.enqueue(entry{ownerA1, t0 - 10}, entry{ownerA2, t0 + 20})
	both := f.entries(entry{ownerA1, t0 - 10}, entry{ownerA2, t0 + 20})
	f.nudge(ownerA1).costs("EXISTS LINDEX PUBLISH").gives(int64(1))
	f.tells(ownerA1)
	f.leaves(both)
	f.nudge(ownerA2).gives(int64(0))
	f.leaves(both)
	held := f.hold()
	f.nudge(ownerA1).costs("EXISTS").gives(int64(0))
	f.leaves(held, both)
}
