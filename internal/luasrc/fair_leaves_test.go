package luasrc

import "github.com/redlatch/redlatch/codec"

// fairLeaves are the stories of waiting no longer.
var fairLeaves = []fairStory{
	{"5.4 those behind the leaver move up, those before it do not", leaveTheMiddle},
	{"5.4 the last to leave leaves nothing", leaveLast},
	{"5.4 the first of several places counts, and all are given up", leaveSeveralPlaces},
	{"5.4 an owner that is queued twice moves twice", leaveBeforeASecondPlace},
	{"5.4 a waiter without a deadline gets one that is long past", leaveBeforeNoDeadline},
	{"5.4 the deadlines of those behind fall by the wait in whatever order they are", leaveBeforeTheEarly},
	{"5.4 fractions of deadlines survive", leaveKeepsFractions},
	{"5.4 an owner with only a deadline loses it", leaveWithoutPlace},
	{"5.4 while the lock is held none is notified", leaveHeld},
	{"ours: leaving a free lock tells the new head", leaveFree},
	{"ours: leaving a free lock tells the dead in front and the first that is not", leaveFreeBeforeTheDead},
	{"ours: leaving a free lock tells the head also when the leaver had no place", leaveFreeWithoutPlace},
	{"ours: a waiter that moved up into the past is notified, and so is the next", leaveFreeAndOverdue},
	{"ours: several leave by one script as they would one by one", leaveTogether},
	{"ours: owners that leave together need no order, and leave once", leaveTogetherInDisorder},
	{"ours: owners that leave together at the end move none", leaveTogetherAtTheEnd},
	{"ours: of owners that leave together none is notified", leaveTogetherFree},
	{"ours: a waiter without a deadline falls by all the waits in front", leaveTogetherBeforeNoDeadline},
}

// hold gives the lock to another owner, without a lease.
func (f *telling) hold() map[string]any {
	f.command("HSET", f.l, ownerA9, "1")
	return lock(f.l, -1, ownerA9, "1")
}

func leaveTheMiddle(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 500}, entry{ownerA3, t0 + 600}, entry{ownerA4, t0 + 700})
	f.giveUp(ownerA2, t0, 490).costs("LRANGE ZRANGE ZREM ZADD ZREM LREM EXISTS").gives(nil)
	f.leaves(held, f.entries(entry{ownerA1, t0 + 10}, entry{ownerA3, t0 + 110}, entry{ownerA4, t0 + 210}))
	f.giveUp(ownerA2, t0, 490).gives(nil)
	f.leaves(held, f.entries(entry{ownerA1, t0 + 10}, entry{ownerA3, t0 + 110}, entry{ownerA4, t0 + 210}))
	// No clock has a say: the dead stay.
	f.giveUp(ownerA3, t0+1000, 100).gives(nil)
	f.leaves(held, f.entries(entry{ownerA1, t0 + 10}, entry{ownerA4, t0 + 110}))
}

func leaveLast(f *telling) {
	f.enqueue(entry{ownerA1, t0 + 10})
	f.giveUp(ownerA1, t0, 10).gives(nil)
	f.leaves()
	f.giveUp(ownerA1, t0, 10).gives(nil)
	f.leaves()
}

func leaveSeveralPlaces(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20}, entry{ownerA3, t0 + 30})
	f.command("RPUSH", codec.QueueKey(f.l), ownerA1, ownerA4)
	f.giveUp(ownerA1, t0, 5).gives(nil)
	f.leaves(held, f.queue(ownerA2, ownerA3, ownerA4),
		f.timeouts(timeouts{ownerA2: float64(t0 + 15), ownerA3: float64(t0 + 25), ownerA4: -5}))
}

func leaveBeforeASecondPlace(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA2, t0 + 20}, entry{ownerA1, t0 + 30}, entry{ownerA3, t0 + 40}, entry{ownerA4, t0 + 50})
	f.command("RPUSH", codec.QueueKey(f.l), ownerA3, ownerA2)
	f.giveUp(ownerA1, t0, 5).gives(nil)
	f.leaves(held, f.queue(ownerA2, ownerA3, ownerA4, ownerA3, ownerA2),
		f.timeouts(timeouts{ownerA2: float64(t0 + 15), ownerA3: float64(t0 + 30), ownerA4: float64(t0 + 45)}))
}

func leaveBeforeNoDeadline(f *telling) {
	held := f.hold()
	f.command("RPUSH", codec.QueueKey(f.l), "before", ownerA1, "orphan", ownerA2, "orphan")
	f.command("ZADD", codec.TimeoutKey(f.l), t0+10, ownerA1, t0+20, ownerA2)
	f.giveUp(ownerA1, t0, 5000).gives(nil)
	f.leaves(held, f.queue("before", "orphan", ownerA2, "orphan"),
		f.timeouts(timeouts{"orphan": -10000, ownerA2: float64(t0 + 20 - 5000)}))
	f.command("LPOP", codec.QueueKey(f.l))
	f.try(ownerA3, t0, 1).gives(int64(1))
	f.leaves(held, f.queue("orphan"))
}

func leaveBeforeTheEarly(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA2, t0 + 90}, entry{ownerA1, t0 + 80}, entry{ownerA3, t0 + 10}, entry{ownerA4, t0 + 20})
	f.giveUp(ownerA1, t0, 5).gives(nil)
	f.leaves(held, f.entries(entry{ownerA2, t0 + 90}, entry{ownerA3, t0 + 5}, entry{ownerA4, t0 + 15}))
}

func leaveKeepsFractions(f *telling) {
	held := f.hold()
	// No constants, with which Go would calculate more exactly than a server.
	late, tenth := 1795224888771.7, 0.1
	for _, behind := range [][]string{{ownerA3, ownerA2, ownerA5}, {ownerA2, ownerA3, ownerA5}} {
		f.command("RPUSH", codec.QueueKey(f.l), ownerA1)
		f.command("RPUSH", codec.QueueKey(f.l), behind[0], behind[1], behind[2])
		f.command("ZADD", codec.TimeoutKey(f.l), "1795224888771.7", ownerA2, "0.1", ownerA3, "922337203685477", ownerA5)
		f.giveUp(ownerA1, t0, 3).gives(nil)
		f.leaves(held, f.queue(behind...),
			f.timeouts(timeouts{ownerA2: late - 3, ownerA3: tenth - 3, ownerA5: 922337203685474}))
		f.command("DEL", codec.QueueKey(f.l), codec.TimeoutKey(f.l))
	}
}

func leaveWithoutPlace(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA2, t0 + 20})
	f.command("ZADD", codec.TimeoutKey(f.l), t0+10, ownerA1)
	f.giveUp(ownerA1, t0, 5).gives(nil)
	f.leaves(held, f.entries(entry{ownerA2, t0 + 20}))
}

func leaveHeld(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20})
	f.giveUp(ownerA1, t0, 5).gives(nil)
	f.leaves(held, f.entries(entry{ownerA2, t0 + 15}))
}

func leaveFree(f *telling) {
	f.enqueue(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20}, entry{ownerA3, t0 + 30}, entry{ownerA4, t0 + 40})
	f.giveUp(ownerA1, t0, 5).gives(nil)
	f.tells(ownerA2)
	f.leaves(f.entries(entry{ownerA2, t0 + 15}, entry{ownerA3, t0 + 25}, entry{ownerA4, t0 + 35}))
	// From further back: the one in front may not have been woken.
	f.giveUp(ownerA3, t0, 5).gives(nil)
	f.tells(ownerA2)
	f.leaves(f.entries(entry{ownerA2, t0 + 15}, entry{ownerA4, t0 + 30}))
}

func leaveFreeBeforeTheDead(f *telling) {
	f.enqueue(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 - 20}, entry{ownerA3, t0}, entry{ownerA4, t0 + 1}, entry{ownerA5, t0 + 2})
	f.giveUp(ownerA1, t0, 0).gives(nil)
	f.tells(ownerA2, ownerA3, ownerA4)
	f.leaves(f.entries(entry{ownerA2, t0 - 20}, entry{ownerA3, t0}, entry{ownerA4, t0 + 1}, entry{ownerA5, t0 + 2}))
	f.giveUp(ownerA5, t0+1, 0).gives(nil)
	f.tells(ownerA2, ownerA3, ownerA4)
	f.leaves(f.entries(entry{ownerA2, t0 - 20}, entry{ownerA3, t0}, entry{ownerA4, t0 + 1}))
	f.command("ZREM", codec.TimeoutKey(f.l), ownerA2)
	f.giveUp(ownerA4, t0, 0).gives(nil)
	f.tells(ownerA2)
	f.leaves(f.queue(ownerA2, ownerA3), f.timeouts(timeouts{ownerA3: float64(t0)}))
}

func leaveFreeWithoutPlace(f *telling) {
	f.enqueue(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 + 20})
	f.giveUp(ownerA1, t0, 5).gives(nil)
	f.tells(ownerA2)
	f.leaves(f.entries(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 + 20}))
}

func leaveFreeAndOverdue(f *telling) {
	f.enqueue(entry{ownerA1, t0 + 300}, entry{ownerA2, t0 + 310}, entry{ownerA3, t0 + 700})
	f.giveUp(ownerA1, t0+20, 300).gives(nil)
	f.tells(ownerA2, ownerA3)
	f.leaves(f.entries(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 + 400}))
}

func leaveTogether(f *telling) {
	held := f.hold()
	all := []entry{{ownerA1, t0 + 1000}, {ownerA2, t0 + 2000}, {ownerA3, t0 + 3000}, {ownerA4, t0 + 4000}, {ownerA5, t0 + 5000}}
	f.enqueue(all...)
	f.giveUp(ownerA2, t0, 10, leaver{ownerA4, 300}).costs("LRANGE ZRANGE ZREM ZADD ZREM LREM ZREM LREM EXISTS").gives(nil)
	f.leaves(held, f.entries(entry{ownerA1, t0 + 1000}, entry{ownerA3, t0 + 2990}, entry{ownerA5, t0 + 4690}))
	f.giveUp(ownerA1, t0, 1, leaver{ownerA3, 2}, leaver{ownerA5, 3}).gives(nil)
	f.leaves(held)
}

func leaveTogetherInDisorder(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 1000}, entry{ownerA2, t0 + 2000}, entry{ownerA3, t0 + 3000}, entry{ownerA4, t0 + 4000})
	// The second time there is nothing left to give up, whatever the wait.
	f.giveUp(ownerA3, t0, 10, leaver{ownerA9, 5000}, leaver{ownerA1, 0}, leaver{ownerA3, 700}).gives(nil)
	f.leaves(held, f.entries(entry{ownerA2, t0 + 2000}, entry{ownerA4, t0 + 3990}))
	f.command("RPUSH", codec.QueueKey(f.l), ownerA2, ownerA5, ownerA4)
	f.giveUp(ownerA4, t0, 100, leaver{ownerA2, 20}).gives(nil)
	f.leaves(held, f.queue(ownerA5), f.timeouts(timeouts{ownerA5: -120}))
}

func leaveTogetherAtTheEnd(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 1000}, entry{ownerA2, t0 + 2000}, entry{ownerA3, t0 + 3000})
	f.giveUp(ownerA2, t0, 10, leaver{ownerA3, 10}).costs("LRANGE ZREM LREM ZREM LREM EXISTS").gives(nil)
	f.leaves(held, f.entries(entry{ownerA1, t0 + 1000}))
}

func leaveTogetherFree(f *telling) {
	f.enqueue(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20}, entry{ownerA3, t0 + 30}, entry{ownerA4, t0 + 40}, entry{ownerA5, t0 + 50})
	f.giveUp(ownerA1, t0, 15, leaver{ownerA2, 15}, leaver{ownerA4, 1}).gives(nil)
	f.tells(ownerA3, ownerA5)
	f.leaves(f.entries(entry{ownerA3, t0}, entry{ownerA5, t0 + 19}))
}

func leaveTogetherBeforeNoDeadline(f *telling) {
	held := f.hold()
	f.enqueue(entry{ownerA1, t0 + 10}, entry{ownerA2, t0 + 20}, entry{ownerA3, t0 + 30})
	f.command("ZREM", codec.TimeoutKey(f.l), ownerA2)
	f.command("RPUSH", codec.QueueKey(f.l), "orphan", ownerA3)
	f.giveUp(ownerA1, t0, 5, leaver{ownerA2, 6}).gives(nil)
	f.leaves(held, f.queue(ownerA3, "orphan", ownerA3), f.timeouts(timeouts{ownerA3: float64(t0 + 30 - 22), "orphan": -11}))
}
