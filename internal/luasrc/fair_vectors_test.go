package luasrc

import (
	"slices"

	"github.com/redlatch/redlatch/codec"
)

// The owners of the golden vectors, all of one client.
const (
	ownerA1  = "11111111-1111-1111-1111-111111111111:1"
	ownerA2  = "11111111-1111-1111-1111-111111111111:2"
	ownerA3  = "11111111-1111-1111-1111-111111111111:3"
	ownerA4  = "11111111-1111-1111-1111-111111111111:4"
	ownerA5  = "11111111-1111-1111-1111-111111111111:5"
	ownerA9  = "11111111-1111-1111-1111-111111111111:9"
	ownerA51 = "11111111-1111-1111-1111-111111111111:51"
)

const (
	// t0 is the time at which the golden vectors begin.
	t0 = int64(1795224888771)
	// fairWait is the wait of an owner that sets none.
	fairWait = int64(300000)
)

// fairStories are played on every server. Those whose names begin with a section
// hold what Redisson does; those with an "ours", a difference on purpose.
func fairStories() []fairStory {
	return slices.Concat(fairVectors, fairTakes, fairQueues, fairReleases, fairLeaves,
		fairHeartbeats, fairEvictions, fairNudges)
}

// fairLongStories are those of queues of thousands.
func fairLongStories() []fairStory { return slices.Concat(fairLong, fairKeepsLong) }

var fairVectors = []fairStory{
	{"13.2 the fair lock, row by row", fairRows},
	{"13.2 a head without a deadline", fairDeadHead},
	{"13.2 a lock without time to live", fairPersisted},
}

// fairShardStories need sharded pub/sub. They expect no message: the listener is
// no shard subscriber.
var fairShardStories = []fairStory{{"6.5 publish on a shard channel", fairShardPublish}}

func fairShardPublish(f *telling) {
	f.publish = "SPUBLISH"
	f.enqueue(entry{ownerA2, t0 + 10})
	for _, free := range []func() *telling{
		func() *telling { return f.release(ownerA9, t0, 0).costs("LINDEX ZSCORE HGET DEL SPUBLISH") },
		func() *telling { return f.force(t0).costs("LINDEX ZSCORE DEL SPUBLISH") },
		func() *telling {
			f.command("DEL", f.l)
			return f.giveUp(ownerA1, t0, 0).costs("LRANGE ZREM LREM EXISTS LRANGE SPUBLISH ZSCORE")
		},
	} {
		f.hold()
		free()
		f.leaves(f.entries(entry{ownerA2, t0 + 10}))
	}
	f.nudge(ownerA2).costs("EXISTS LINDEX SPUBLISH")
	f.leaves(f.entries(entry{ownerA2, t0 + 10}))
	f.command("LPUSH", codec.QueueKey(f.l), "dead")
	f.evict(t0, entry{"dead", none}).costs("PTTL LINDEX ZSCORE ZREM LPOP LRANGE SPUBLISH ZSCORE")
	f.leaves(f.entries(entry{ownerA2, t0 + 10}))
	f.hold()
	f.releaseShared(ownerA9, t0).costs("GET LINDEX ZSCORE HGET DEL SET SPUBLISH")
	f.leaves(f.latch("1"), f.entries(entry{ownerA2, t0 + 10}))
}

func fairRows(f *telling) {
	f.acquire(ownerA1, t0, fairWait).gives(nil)
	f.leaves(f.heldBy(ownerA1, "1"))
	left := f.acquire(ownerA2, t0, fairWait).gives(about(fairLease))
	second := t0 + left + fairWait // 1795225218771, less what has passed since
	f.leaves(f.heldBy(ownerA1, "1"), f.entries(entry{ownerA2, second}))
	f.acquire(ownerA3, t0, 5000).gives(second - t0)
	f.leaves(f.heldBy(ownerA1, "1"), f.entries(entry{ownerA2, second}, entry{ownerA3, second + 5000}))
	f.acquire(ownerA2, t0, fairWait).gives(about(fairLease))
	f.leaves(f.heldBy(ownerA1, "1"), f.entries(entry{ownerA2, second}, entry{ownerA3, second + 5000}))
	f.try(ownerA4, t0, fairWait).gives(int64(1))
	f.leaves(f.heldBy(ownerA1, "1"), f.entries(entry{ownerA2, second}, entry{ownerA3, second + 5000}))
	f.giveUp(ownerA2, t0, 5000).gives(nil)
	third := second
	f.leaves(f.heldBy(ownerA1, "1"), f.entries(entry{ownerA3, third}))
	f.releaseShared(ownerA9, t0).gives(nil)
	f.leaves(f.heldBy(ownerA1, "1"), f.entries(entry{ownerA3, third}))
	f.release(ownerA9, t0, 0).gives(nil)
	f.leaves(f.heldBy(ownerA1, "1"), f.entries(entry{ownerA3, third}))
	latch := latched(codec.LatchKey(f.l, requestID), "1")
	f.releaseShared(ownerA1, t0).gives(int64(1))
	f.tells(ownerA3)
	f.leaves(latch, f.entries(entry{ownerA3, third}))
	f.acquire(ownerA5, t0+3, fairWait).gives(third - t0 - 3)
	f.leaves(latch, f.entries(entry{ownerA3, third}, entry{ownerA5, third + fairWait}))
	f.acquire(ownerA5, t0+3, fairWait).gives(int64(0))
	f.leaves(latch, f.entries(entry{ownerA3, third}, entry{ownerA5, third + fairWait}))
	f.acquire(ownerA3, t0+3, 5000).gives(nil)
	f.leaves(latch, f.heldBy(ownerA3, "1"), f.entries(entry{ownerA5, third + fairWait - 5000}))
	f.acquire(ownerA3, t0+3, 5000).gives(nil)
	f.leaves(latch, f.heldBy(ownerA3, "2"), f.entries(entry{ownerA5, third + fairWait - 5000}))
}

func fairDeadHead(f *telling) {
	f.command("RPUSH", codec.QueueKey(f.l), "dead")
	f.acquire(ownerA51, t0, fairWait).gives(int64(-2))
	f.leaves(f.queue("dead", ownerA51), f.timeouts(timeouts{ownerA51: float64(t0 - 2 + fairWait)}))
	f.acquire(ownerA51, t0, fairWait).gives(int64(0))
	f.leaves(f.queue("dead", ownerA51), f.timeouts(timeouts{ownerA51: float64(t0 - 2 + fairWait)}))
}

func fairPersisted(f *telling) {
	held := lock(f.l, -1, ownerA1, "1")
	f.command("HSET", f.l, ownerA1, "1")
	f.acquire(ownerA2, t0, fairWait).gives(int64(-1))
	f.leaves(held, f.entries(entry{ownerA2, t0 - 1 + fairWait}))
	f.acquire(ownerA2, t0, fairWait).gives(int64(0))
	f.leaves(held, f.entries(entry{ownerA2, t0 - 1 + fairWait}))
}
