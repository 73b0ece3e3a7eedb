package luasrc

import "github.com/redlatch/redlatch/codec"

// fairKeepsLong are the stories of keeping long queues.
var fairKeepsLong = []fairStory{
	{"ours: a heartbeat moves a long queue", beatMovesMany},
	{"ours: a heartbeat keeps many of its own", beatKeepsMany},
	{"ours: an eviction moves a long queue", evictBeforeMany},
	{"ours: many dead are taken out at once", evictMany},
}

// lengths are both sides of the ends of chunks, and more than fits on a stack.
var lengths = []int64{499, 500, 501, 1000, 10000}

func beatMovesMany(f *telling) {
	held := f.hold()
	for _, n := range lengths {
		f.sitAll(append([]seat{{ownerA1, t0 + 9}}, line(n, t0+10)...))
		after := append([]seat{{ownerA1, t0 + 15000}}, line(n, t0+15001)...)
		f.beat(t0, own{ownerA1, 5}).finds(int64(-1), int(n)+1, after[:64]...)
		f.leaves(held, f.seats(after...))
		f.command("DEL", codec.QueueKey(f.l), codec.TimeoutKey(f.l))
	}
}

func beatKeepsMany(f *telling) {
	held := f.hold()
	for _, n := range lengths {
		all := line(n, t0+10)
		f.sitAll(all)
		var mine []own
		for i := range all {
			all[i].deadline = t0 + 15000 + int64(i)*7
			mine = append(mine, own{all[i].owner, 7})
		}
		f.beat(t0, mine...).finds(int64(-1), int(n), all[:64]...)
		f.leaves(held, f.seats(all...))
		f.command("DEL", codec.QueueKey(f.l), codec.TimeoutKey(f.l))
	}
}

func evictBeforeMany(f *telling) {
	held := f.hold()
	for _, n := range lengths {
		f.sitAll(append([]seat{{ownerA1, t0 + 315000}}, line(n, t0+400000)...))
		f.evict(t0, seat{ownerA1, t0 + 315000}).gives(gone(ownerA1))
		f.leaves(held, f.seats(line(n, t0+100000)...))
		f.command("DEL", codec.QueueKey(f.l), codec.TimeoutKey(f.l))
	}
}

func evictMany(f *telling) {
	held := f.hold()
	for _, n := range []int64{64, 1000, 10000} {
		dead := line(n, t0+115000)
		f.sitAll(append(append([]seat{}, dead...), seat{ownerA1, t0 + 400000}))
		evicted := gone()
		for _, s := range dead {
			evicted = append(evicted, s.owner)
		}
		f.evict(t0, dead...).gives(evicted)
		f.leaves(held, f.seats(seat{ownerA1, t0 + 400000 - 100000 - n + 1}))
		f.command("DEL", codec.QueueKey(f.l), codec.TimeoutKey(f.l))
	}
}
