package luasrc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// fairKeepsLong are the stories of keeping long queues.
var fairKeepsLong = []fairStory{
	{"ours: a heartbeat moves a long queue", long(beatMovesMany)},
	{"ours: a heartbeat keeps many of its own", long(beatKeepsMany)},
	{"ours: an eviction moves a long queue", long(evictBeforeMany)},
	{"ours: an eviction looks behind many that are overdue", evictBehindManyOverdue},
	{"ours: many dead are taken out at once", long(evictMany)},
}

// long tells a story of queues that end on either side of the end of a chunk, and of
// one that does not fit on a stack.
func long(tell func(f *telling, n int64)) func(f *telling) {
	return func(f *telling) {
		for _, n := range []int64{499, 500, 501, 1000, 4500} {
			tell(f, n)
			f.command("DEL", f.l, codec.QueueKey(f.l), codec.TimeoutKey(f.l))
		}
	}
}

func TestHeartbeatScriptsTakeQueuesOfTenThousand(t *testing.T) {
	testlevel.All(t, "10,000 waiters on each server")
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		s := newQuietStage(t, target)
		for name, tell := range map[string]func(f *telling, n int64){
			"moved by a heartbeat": beatMovesMany, "its own": beatKeepsMany, "moved by an eviction": evictBeforeMany, "dead": evictMany,
		} {
			require.NoError(t, s.tellFair(fairStory{name, func(f *telling) { tell(f, 10000) }}))
		}
	})
}

func beatMovesMany(f *telling, n int64) {
	held := f.hold()
	f.enqueue(append([]entry{{ownerA1, t0 + 9}}, entriesFrom(n, t0+10)...)...)
	after := append([]entry{{ownerA1, t0 + 15000}}, entriesFrom(n, t0+15001)...)
	f.beat(t0, own{ownerA1, 5}).finds(int64(-1), int(n)+1, after[:64]...)
	f.leaves(held, f.entries(after...))
}

func beatKeepsMany(f *telling, n int64) {
	held := f.hold()
	all := entriesFrom(n, t0+10)
	f.enqueue(all...)
	var mine []own
	for i := range all {
		all[i].deadline = t0 + 15000 + int64(i)*7
		mine = append(mine, own{all[i].owner, 7})
	}
	f.beat(t0, mine...).finds(int64(-1), int(n), all[:64]...)
	f.leaves(held, f.entries(all...))
}

func evictBeforeMany(f *telling, n int64) {
	held := f.hold()
	f.enqueue(append([]entry{{ownerA1, t0 + 315000}}, entriesFrom(n, t0+400000)...)...)
	f.evict(t0, entry{ownerA1, t0 + 315000}).gives(gone(ownerA1))
	f.leaves(held, f.entries(entriesFrom(n, t0+100000)...))
}

func evictBehindManyOverdue(f *telling) {
	held := f.hold()
	overdue := entriesFrom(1500, t0-5000)
	f.enqueue(append([]entry{{ownerA1, t0 + 315000}, {ownerA2, t0 + 20000}}, overdue...)...)
	f.evict(t0, entry{ownerA1, t0 + 315000}).gives(gone(ownerA1))
	f.leaves(held, f.entries(append([]entry{{ownerA2, t0 + 15000}}, entriesFrom(1500, t0-10000)...)...))
}

func evictMany(f *telling, n int64) {
	held := f.hold()
	dead := entriesFrom(n, t0+115000)
	f.enqueue(append(entriesFrom(n, t0+115000), entry{ownerA1, t0 + 400000})...)
	evicted := gone()
	for _, s := range dead {
		evicted = append(evicted, s.owner)
	}
	f.evict(t0, dead...).gives(evicted)
	// The first takes 100 s off, each further one the millisecond that it is later.
	f.leaves(held, f.entries(entry{ownerA1, t0 + 400000 - 100000 - (n - 1)}))
}
