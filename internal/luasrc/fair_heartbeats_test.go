package luasrc

import "github.com/redlatch/redlatch/codec"

// fairHeartbeats are the stories of keeping a place.
var fairHeartbeats = []fairStory{
	{"ours: a heartbeat keeps its own ahead of what those before them take off", beatKeepsOwn},
	{"ours: each of its own takes off its own wait", beatAddsOwnWaits},
	{"ours: a waiter behind one that was put off stays its wait behind it", beatMovesFollowers},
	{"ours: one that was not put off moves none", beatMovesNone},
	{"ours: a heartbeat that finds all well writes nothing", beatWritesNothing},
	{"ours: a first that is known to live is kept while the lock is held", beatKeepsTheLivingHead},
	{"ours: others that are known to live are kept like its own", beatKeepsTheLiving},
	{"ours: others are known to take off what was seen, or the fair wait", beatReckonsWithWaits},
	{"ours: own deadlines that have come are put off, and none is removed", beatSavesTheOverdue},
	{"ours: a waiter without a deadline is skipped", beatPassesOver},
	{"ours: a first without a deadline does not count as a predecessor", beatBehindNoDeadline},
	{"ours: where one stands several times its first place counts", beatOfSeveralPlaces},
	{"ours: owners without place or deadline are missing", beatMissesOwners},
	{"ours: a heartbeat answers as many of the first as it is asked for", beatWindows},
	{"ours: a heartbeat says what the lock has left", beatTellsWhatIsLeft},
	{"ours: fractions of deadlines survive a heartbeat", beatKeepsFractions},
	{"ours: heartbeats of several processes come to rest", beatsOfTwo},
}

func beatKeepsOwn(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20}, entry{ownerA3, t0 + 40})
	after := []entry{{ownerA1, t0 + 10}, {ownerA2, t0 + fairKeep + fairWait}, {ownerA3, t0 + fairKeep + fairWait + 20}}
	f.beat(t0, own{ownerA2, 5000}).costs("PTTL LRANGE ZRANGE ZREM ZADD ZSCORE ZSCORE ZSCORE").finds(int64(-1), 3, after...)
	f.leaves(held, f.entries(after...))
}

func beatAddsOwnWaits(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 1}, entry{ownerA2, t0 + 2}, entry{ownerA3, t0 + 9}, entry{ownerA4, t0 + 10})
	after := []entry{
		{ownerA1, t0 + 15000},
		{ownerA2, t0 + 15000 + 5000},
		{ownerA3, t0 + 20000 + 7},
		{ownerA4, t0 + 20007 + 80000},
	}
	f.beat(t0, own{ownerA4, 80000}, own{ownerA1, 5000}, own{ownerA2, 300}).finds(int64(-1), 4, after...)
	f.leaves(held, f.entries(after...))
}

// beatMovesFollowers: what a follower will take off is never less than nothing and
// never more than the fair wait, whatever the deadlines say.
func beatMovesFollowers(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0}, entry{ownerA2, t0 - 50}, entry{ownerA3, t0 - 20}, entry{ownerA4, t0 - 20 + 300001}, entry{ownerA5, t0 + 10})
	after := []entry{
		{ownerA1, t0 + 15000},
		{ownerA2, t0 + 15000},
		{ownerA3, t0 + 15030},
		{ownerA4, t0 + 315030},
		{ownerA5, t0 + 15000 + 1000 + 30 + 300000},
	}
	f.beat(t0, own{ownerA1, 1000}, own{ownerA5, 7}).finds(int64(-1), 5, after...)
	f.leaves(held, f.entries(after...))
}

func beatMovesNone(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 20000}, entry{ownerA2, t0 + 20001}, entry{ownerA3, t0 + 20003})
	after := []entry{{ownerA1, t0 + 20000}, {ownerA2, t0 + 20001}, {ownerA3, t0 + 21000}}
	f.beat(t0, own{ownerA1, 5000}, own{ownerA2, 1000}, own{ownerA3, 5000}).finds(int64(-1), 3, after...)
	f.leaves(held, f.entries(after...))
}

func beatWritesNothing(f *telling) {
	held := f.hold()
	all := []entry{{ownerA1, t0 + 15000}, {ownerA2, t0 + 15001}, {ownerA3, t0 + 20001}, {ownerA4, t0 - 5}}
	f.enqueue(all...)
	f.beat(t0, own{ownerA1, 5000}, own{ownerA3, 5000}).costs("PTTL LRANGE ZRANGE ZSCORE ZSCORE ZSCORE ZSCORE").finds(int64(-1), 4, all...)
	f.leaves(held, f.entries(all...))
}

func beatKeepsTheLivingHead(f *telling) {
	f.enqueue(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20})
	// A free lock is the head's to take: a head that does not come is in the way.
	f.beatFor(t0, ownerA1, 64).finds(int64(-2), 2, entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20})
	f.leaves(f.entries(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20}))
	held := f.hold()
	after := []entry{{ownerA1, t0 + fairWait}, {ownerA2, t0 + fairWait + 10}}
	f.beatFor(t0, ownerA1, 64).finds(int64(-1), 2, after...)
	f.leaves(held, f.entries(after...))
	f.beatFor(t0-1, ownerA1, 64).finds(int64(-1), 2, after...)
	f.leaves(held, f.entries(after...))
	// One of its own is kept as such.
	f.beatFor(t0+fairWait, ownerA1, 64, own{ownerA1, 5}).finds(int64(-1), 2,
		entry{ownerA1, t0 + fairWait + 15000}, entry{ownerA2, t0 + fairWait + 15010})
	f.leaves(held, f.entries(entry{ownerA1, t0 + fairWait + 15000}, entry{ownerA2, t0 + fairWait + 15010}))
	f.command("PEXPIRE", f.l, fairLease)
	f.beatFor(t0+fairWait, ownerA1, 0).finds(about(fairLease), 2)
	f.leaves(f.heldBy(ownerA9, "1"), f.entries(entry{ownerA1, t0 + 2*fairWait}, entry{ownerA2, t0 + 2*fairWait + 10}))
}

// beatKeepsTheLiving: others that live are kept like its own.
func beatKeepsTheLiving(f *telling) {
	held := f.hold()
	all := []entry{{ownerA1, t0 + 10}, {ownerA2, t0 + 20}, {ownerA3, t0 + 30}}
	f.enqueue(all...)
	f.beatKnowing(t0, []other{{ownerA2, 5, false}, {ownerA4, 5, true}, {ownerA3, 0, false}}, 64).finds(int64(-1), 3, all...)
	f.leaves(held, f.entries(all...))
	after := []entry{{ownerA1, t0 + 10}, {ownerA2, t0 + fairKeep + fairWait}, {ownerA3, t0 + fairKeep + fairWait + 10}}
	f.beatKnowing(t0, []other{{ownerA2, 5, true}}, 64).finds(int64(-1), 3, after...)
	f.leaves(held, f.entries(after...))
	// The first of a free lock is not kept, and the others are.
	f.command("DEL", f.l)
	after = []entry{{ownerA1, t0 + 10}, {ownerA2, t0 + fairKeep + fairWait + 7}, {ownerA3, t0 + fairKeep + 2*fairWait + 7}}
	f.beatKnowing(t0+7, []other{{ownerA1, 0, true}, {ownerA2, 0, true}, {ownerA3, 0, true}}, 64).finds(int64(-2), 3, after...)
	f.leaves(f.entries(after...))
}

// beatReckonsWithWaits: what others take off is what was seen of them, but at least
// what one takes off that sets no wait.
func beatReckonsWithWaits(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20}, entry{ownerA3, t0 + 30}, entry{ownerA4, t0 + 40})
	after := []entry{
		{ownerA1, t0 + 10},
		{ownerA2, t0 + 20},
		{ownerA3, t0 + fairKeep + 400000 + fairWait},
		{ownerA4, t0 + fairKeep + 400000 + fairWait + 350000},
	}
	f.beatKnowing(t0, []other{{ownerA1, 400000, false}, {ownerA2, 299999, false}, {ownerA4, 350000, false}}, 64, own{ownerA3, 5}).
		finds(int64(-1), 4, after...)
	f.leaves(held, f.entries(after...))
	// Its own wait is known better.
	f.command("DEL", codec.QueueKey(f.l), codec.TimeoutKey(f.l))
	f.enqueue(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20})
	after = []entry{{ownerA1, t0 + fairKeep}, {ownerA2, t0 + fairKeep + 5}}
	f.beatKnowing(t0, []other{{ownerA1, 400000, false}}, 64, own{ownerA1, 5}, own{ownerA2, 1}).finds(int64(-1), 2, after...)
	f.leaves(held, f.entries(after...))
}

func beatSavesTheOverdue(f *telling) {
	f.enqueue(entry{ownerA1, t0 - 5000}, entry{ownerA2, t0 - 4000}, entry{ownerA3, t0 - 3000})
	after := []entry{{ownerA1, t0 - 5000}, {ownerA2, t0 + 315000}, {ownerA3, t0 + 316000}}
	f.beat(t0, own{ownerA2, 100}).finds(int64(-2), 3, after...)
	f.leaves(f.entries(after...))
}

func beatPassesOver(f *telling) {
	f.enqueue(entry{ownerA1, t0 + 10})
	f.command("RPUSH", codec.QueueKey(f.l), "dead")
	f.enqueue(entry{ownerA2, t0 + 50})
	f.beat(t0, own{ownerA1, 5}).finds(int64(-2), 3, entry{ownerA1, t0 + 15000}, entry{"dead", none}, entry{ownerA2, t0 + 15040})
	f.leaves(f.queue(ownerA1, "dead", ownerA2), f.timeouts(timeouts{ownerA1: float64(t0 + 15000), ownerA2: float64(t0 + 15040)}))
}

func beatBehindNoDeadline(f *telling) {
	held := f.hold()
	f.command("RPUSH", codec.QueueKey(f.l), "dead")
	f.enqueue(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20})
	places := f.queue("dead", ownerA1, ownerA2)
	f.beatFor(t0, "dead", 64).finds(int64(-1), 3, entry{"dead", none}, entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20})
	f.leaves(held, places, f.timeouts(timeouts{ownerA1: float64(t0 + 10), ownerA2: float64(t0 + 20)}))
	f.beat(t0, own{ownerA2, 5}).finds(int64(-1), 3, entry{"dead", none}, entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 315000})
	f.leaves(held, places, f.timeouts(timeouts{ownerA1: float64(t0 + 10), ownerA2: float64(t0 + 315000)}))
	f.beatFor(t0, ownerA1, 0).finds(int64(-1), 3)
	f.leaves(held, places, f.timeouts(timeouts{ownerA1: float64(t0 + 15000), ownerA2: float64(t0 + 315000)}))
}

func beatOfSeveralPlaces(f *telling) {
	f.enqueue(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 30})
	f.command("RPUSH", codec.QueueKey(f.l), ownerA1)
	f.enqueue(entry{ownerA3, t0 + 60}, entry{ownerA4, t0 + 61})
	places := f.queue(ownerA1, ownerA2, ownerA1, ownerA3, ownerA4)
	after := []entry{{ownerA1, t0 + 15000}, {ownerA2, t0 + 15020}, {ownerA3, t0 + 15050}, {ownerA4, t0 + 15055}}
	f.beat(t0, own{ownerA1, 5}, own{ownerA4, 5}).finds(int64(-2), 5, after[0], after[1], after[0], after[2], after[3])
	f.leaves(places, f.timeouts(timeouts{
		ownerA1: float64(t0 + 15000), ownerA2: float64(t0 + 15020), ownerA3: float64(t0 + 15050), ownerA4: float64(t0 + 15055),
	}))
}

func beatMissesOwners(f *telling) {
	f.enqueue(entry{ownerA1, t0 + 10})
	f.command("RPUSH", codec.QueueKey(f.l), ownerA2)
	f.command("ZADD", codec.TimeoutKey(f.l), t0+20, ownerA3)
	f.beat(t0, own{ownerA3, 5}, own{ownerA2, 5}, own{ownerA1, 5}, own{ownerA4, 5}, own{ownerA4, 5}).
		misses(int64(-2), 2, []any{ownerA3, ownerA2, ownerA4}, entry{ownerA1, t0 + 15000}, entry{ownerA2, none})
	f.leaves(f.queue(ownerA1, ownerA2), f.timeouts(timeouts{ownerA1: float64(t0 + 15000), ownerA3: float64(t0 + 20)}))
}

func beatWindows(f *telling) {
	f.beatFor(t0, "", 64).costs("PTTL LRANGE ZRANGE").finds(int64(-2), 0)
	f.leaves()
	all := []entry{{ownerA1, t0 + 10}, {ownerA2, t0 + 20}, {ownerA3, t0 + 30}}
	f.enqueue(all...)
	for _, window := range []int{0, 1, 2, 3, 4} {
		f.beatFor(t0, "", window).finds(int64(-2), 3, all[:min(window, 3)]...)
		f.leaves(f.entries(all...))
	}
	f.beatFor(t0, "", 1, own{ownerA3, 5}).finds(int64(-2), 3, all[0])
	f.leaves(f.entries(all[0], all[1], entry{ownerA3, t0 + 15000 + fairWait + 10}))
}

func beatTellsWhatIsLeft(f *telling) {
	f.beat(t0).finds(int64(-2), 0)
	f.leaves()
	f.command("HSET", f.l, ownerA9, "1")
	f.beat(t0).finds(int64(-1), 0)
	f.leaves(lock(f.l, -1, ownerA9, "1"))
	f.command("PEXPIRE", f.l, fairLease)
	f.beat(t0).finds(about(fairLease), 0)
	f.leaves(f.heldBy(ownerA9, "1"))
}

func beatKeepsFractions(f *telling) {
	f.command("RPUSH", codec.QueueKey(f.l), ownerA5, ownerA1, ownerA2)
	f.command("ZADD", codec.TimeoutKey(f.l), "0.1", ownerA5, "1795224888771.25", ownerA1, "1795224888781.5", ownerA2)
	f.beatFor(t0, "", 0, own{ownerA1, 5}).finds(int64(-2), 3)
	tenth := 0.1
	f.leaves(f.queue(ownerA5, ownerA1, ownerA2),
		f.timeouts(timeouts{ownerA5: tenth, ownerA1: float64(t0 + 315000), ownerA2: float64(t0+315010) + 0.25}))
}

func beatsOfTwo(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 1}, entry{ownerA2, t0 + 2}, entry{ownerA3, t0 + 3}, entry{ownerA4, t0 + 4})
	one, two := []own{{ownerA1, fairWait}, {ownerA3, 5000}}, []own{{ownerA2, fairWait}, {ownerA4, 5000}}
	first := []entry{{ownerA1, t0 + 15000}, {ownerA2, t0 + 15001}, {ownerA3, t0 + 315001}, {ownerA4, t0 + 315002}}
	f.beat(t0, one...).finds(int64(-1), 4, first...)
	f.leaves(held, f.entries(first...))
	after := []entry{{ownerA1, t0 + 15000}, {ownerA2, t0 + 315000}, {ownerA3, t0 + 615000}, {ownerA4, t0 + 915000}}
	for _, mine := range [][]own{two, one, two} {
		f.beat(t0, mine...).finds(int64(-1), 4, after...)
		f.leaves(held, f.entries(after...))
	}
}
