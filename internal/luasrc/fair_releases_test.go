package luasrc

import "github.com/redlatch/redlatch/codec"

// fairReleases are the stories of giving the lock back.
var fairReleases = []fairStory{
	{"5.5 the head is notified, on its own channel, and stays in the queue", releaseNotifiesTheHead},
	{"5.5 no waiter, no notification", releaseNotifiesNone},
	{"5.5 the first living waiter behind the dead is notified", releaseNotifiesTheLiving},
	{"5.5 the whole lock goes, whatever else is in it", releaseDeletes},
	{"ours: a release goes by target, late or repeated", releaseByTarget},
	{"ours: a release of an absent lock tells the head and says so", releaseOfNothing},
	{"5.5 a shared release counts down, and its latch makes it harmless to repeat", sharedFairRelease},
	{"ours: a shared release of an absent lock tells the head and says so", sharedReleaseOfNothing},
	{"5.6 force frees and tells the head", forceFair},
}

func releaseNotifiesTheHead(f *telling) {
	f.acquire(ownerA1, t0, fairWait).gives(nil)
	f.leaves(f.heldBy(ownerA1, "1"))
	f.enqueue(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 + 20})
	f.release(ownerA1, t0, 0).costs("LINDEX ZSCORE HGET DEL PUBLISH").gives(int64(1))
	f.tells(ownerA2)
	f.leaves(f.entries(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 + 20}))
}

func releaseNotifiesNone(f *telling) {
	f.acquire(ownerA1, t0, fairWait).gives(nil)
	f.leaves(f.heldBy(ownerA1, "1"))
	f.release(ownerA1, t0, 0).costs("LINDEX HGET DEL").gives(int64(1))
	f.leaves()
	f.acquire(ownerA1, t0, fairWait).gives(nil)
	f.leaves(f.heldBy(ownerA1, "1"))
	f.releaseShared(ownerA1, t0).gives(int64(1))
	f.leaves(f.latch("1"))
	f.command("DEL", codec.LatchKey(f.l, requestID))
	f.acquire(ownerA1, t0, fairWait).gives(nil)
	f.leaves(f.heldBy(ownerA1, "1"))
	f.force(t0).gives(int64(1))
	f.leaves()
}

func releaseNotifiesTheLiving(f *telling) {
	f.acquire(ownerA1, t0, fairWait).gives(nil)
	f.leaves(f.heldBy(ownerA1, "1"))
	f.enqueue(entry{ownerA2, t0}, entry{ownerA3, t0 + 20})
	f.release(ownerA1, t0, 0).gives(int64(1))
	f.tells(ownerA3)
	f.leaves(f.entries(entry{ownerA3, t0 + 20}))
	f.release(ownerA1, t0+20, 0).gives(int64(2))
	f.leaves()
	f.enqueue(entry{ownerA2, t0}, entry{ownerA3, t0 + 20})
	f.releaseShared(ownerA1, t0).gives(int64(2))
	f.tells(ownerA3)
	f.leaves(f.latch("2"), f.entries(entry{ownerA3, t0 + 20}))
}

func releaseDeletes(f *telling) {
	f.command("HSET", f.l, ownerA1, "3", ownerA2, "4")
	f.release(ownerA1, t0, 0).gives(int64(1))
	f.leaves()
	f.command("HSET", f.l, ownerA1, "1", ownerA2, "4")
	f.releaseShared(ownerA1, t0).gives(int64(1))
	f.leaves(f.latch("1"))
}

func releaseByTarget(f *telling) {
	f.command("HSET", f.l, ownerA1, "10")
	f.enqueue(entry{ownerA2, t0 + 10})
	next := f.entries(entry{ownerA2, t0 + 10})
	f.release(ownerA1, t0, 11).gives(int64(0))
	f.leaves(lock(f.l, -1, ownerA1, "10"), next)
	// Ten is more than nine as a number, not as a text.
	f.release(ownerA1, t0, 9).gives(int64(0))
	f.leaves(f.heldBy(ownerA1, "9"), next)
	f.command("PERSIST", f.l)
	for _, late := range []int64{10, 9} {
		f.release(ownerA1, t0, late).gives(int64(0))
		f.leaves(lock(f.l, -1, ownerA1, "9"), next)
	}
	f.release(ownerA2, t0, 1).gives(nil)
	f.leaves(lock(f.l, -1, ownerA1, "9"), next)
	f.release(ownerA1, t0, 0).gives(int64(1))
	f.tells(ownerA2)
	f.leaves(next)
}

func releaseOfNothing(f *telling) {
	f.release(ownerA1, t0, 0).gives(int64(2))
	f.leaves()
	f.enqueue(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 + 20})
	for _, target := range []int64{0, 3} {
		f.release(ownerA1, t0, target).gives(int64(2))
		f.tells(ownerA2)
		f.leaves(f.entries(entry{ownerA2, t0 + 10}, entry{ownerA3, t0 + 20}))
	}
}

func sharedFairRelease(f *telling) {
	f.command("HSET", f.l, ownerA1, "2")
	f.enqueue(entry{ownerA2, t0 + 10})
	next := f.entries(entry{ownerA2, t0 + 10})
	for range 2 {
		f.releaseShared(ownerA1, t0).gives(int64(0))
		f.leaves(f.heldBy(ownerA1, "1"), f.latch("0"), next)
	}
	f.command("DEL", codec.LatchKey(f.l, requestID))
	f.releaseShared(ownerA1, t0).gives(int64(1))
	f.tells(ownerA2)
	f.leaves(f.latch("1"), next)
	// A repeated one does not even remove the dead.
	f.releaseShared(ownerA1, t0+10).costs("GET").gives(int64(1))
	f.leaves(f.latch("1"), next)
	f.command("DEL", codec.LatchKey(f.l, requestID))
	f.command("HSET", f.l, ownerA9, "1")
	f.releaseShared(ownerA1, t0).gives(nil)
	f.leaves(lock(f.l, -1, ownerA9, "1"), next)
}

func sharedReleaseOfNothing(f *telling) {
	f.enqueue(entry{ownerA2, t0 + 10})
	f.releaseShared(ownerA1, t0).gives(int64(2))
	f.tells(ownerA2)
	f.leaves(f.latch("2"), f.entries(entry{ownerA2, t0 + 10}))
	f.releaseShared(ownerA1, t0).gives(int64(2))
	f.leaves(f.latch("2"), f.entries(entry{ownerA2, t0 + 10}))
}

func forceFair(f *telling) {
	f.enqueue(entry{ownerA2, t0}, entry{ownerA3, t0 + 20}, entry{ownerA4, t0 + 30})
	f.force(t0).gives(int64(0))
	f.leaves(f.entries(entry{ownerA3, t0 + 20}, entry{ownerA4, t0 + 30}))
	f.command("HSET", f.l, ownerA1, "5")
	f.force(t0 + 20).gives(int64(1))
	f.tells(ownerA4)
	f.leaves(f.entries(entry{ownerA4, t0 + 30}))
}

// latch is a state of the latch of all shared releases here.
func (f *telling) latch(value string) map[string]any {
	return latched(codec.LatchKey(f.l, requestID), value)
}
