package luasrc

import (
	"fmt"
	"testing"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// fairLong are the stories about queues of thousands, whose deadlines move in parts.
var fairLong = append([]fairStory{
	{"the deadlines of a long queue fall by the wait", func(f *fairPlayer) {
		for _, take := range []func(owner string, now, wait int64) *fairPlayer{f.try, f.acquire} {
			for _, n := range []int64{3, 4, 5, 999, 1000, 1001, 9000} {
				f.enqueue(append([]entry{in(a1, 5)}, entriesFrom(n, t0+10)...)...)
				take(a1, 0, fairWait)
				f.command("DEL", f.l)
				f.clear()
			}
		}
	}},
	{"a long queue moves up", func(f *fairPlayer) {
		f.hold()
		for _, n := range longLengths() {
			f.enqueue(append([]entry{in(a1, 5)}, entriesFrom(n, t0+10)...)...)
			f.giveUp(a1, 0, fairWait)
			f.clear()
		}
	}},
	{"every other of many leaves", func(f *fairPlayer) {
		f.hold()
		for _, n := range []int64{999, 1000, 1001, 2100} {
			all := entriesFrom(2*n, t0+1_000_000)
			f.enqueue(all...)
			var leave []waiter
			for i := 0; i < len(all); i += 2 {
				leave = append(leave, waiter{all[i].owner, int64(i%7 + 1)})
			}
			f.giveUp(leave[0].owner, 0, leave[0].wait, leave[1:]...)
			f.clear()
		}
	}},
	{"a heartbeat moves a long queue", long(beatMovesMany)},
	{"a heartbeat keeps many own waiters", long(beatKeepsMany)},
	{"an eviction moves a long queue", long(evictBeforeMany)},
	{"many dead are evicted by one call", long(evictMany)},
	{"an eviction looks behind many that are overdue", func(f *fairPlayer) {
		f.hold()
		f.enqueue(append([]entry{in(a1, 315000), in(a2, 20000)}, entriesFrom(1500, t0-5000)...)...)
		f.evict(in(a1, 315000))
	}},
}, fairLeavesLong...)

// fairLeavesLong also run by default: they are about the parts in which a long queue is read.
var fairLeavesLong = []fairStory{
	{"leavers are found anywhere in a long queue", func(f *fairPlayer) {
		f.hold()
		lengths := []int{1000, 2001}
		if testlevel.IsAll() {
			lengths = []int{999, 1000, 1001, 2000, 2001}
		}
		for _, n := range lengths {
			all := entriesFrom(int64(n), t0+1_000_000)
			last := all[n-1].owner
			for _, leavers := range [][]string{
				{last}, {all[n-999].owner}, {all[max(0, n-1000)].owner}, {all[max(0, n-1001)].owner, last},
				{all[0].owner, last}, {last, all[0].owner}, {a1}, {all[n-3].owner, a1},
			} {
				f.enqueue(all...)
				var more []waiter
				for _, owner := range leavers {
					more = append(more, waiter{owner, 7})
				}
				f.giveUp(leavers[0], 0, 7, more...)
				f.clear()
			}
		}
	}},
	{"the first of several places counts in a long queue", func(f *fairPlayer) {
		f.hold()
		all := entriesFrom(1500, t0+1_000_000)
		f.enqueue(all...)
		f.push(all[2].owner)
		f.giveUp(all[2].owner, 0, 7)
	}},
	{"an owner with only a deadline leaves a long queue with as many deadlines as places", func(f *fairPlayer) {
		f.hold()
		all := entriesFrom(1000, t0+1_000_000)
		f.enqueue(all...)
		f.command("ZREM", codec.TimeoutKey(f.l), all[5].owner)
		f.set(t0, a1)
		f.giveUp(all[997].owner, 0, 7, waiter{a1, 7})
	}},
}

// entriesFrom returns n waiters whose deadlines are a millisecond apart.
func entriesFrom(n, first int64) []entry {
	all := make([]entry, n)
	for i := range all {
		all[i] = entry{fmt.Sprintf("waiter %d", i), first + int64(i)}
	}
	return all
}

// longLengths are on both sides of the end of a part. The last one, which only make test-all uses, does not fit on the
// server's stack.
func longLengths() []int64 {
	return []int64{499, 500, 501, 1000, 10_000}[:testlevel.Rounds(4, 5)]
}

func long(tell func(f *fairPlayer, n int64)) func(f *fairPlayer) {
	return func(f *fairPlayer) {
		for _, n := range longLengths() {
			f.hold()
			tell(f, n)
			f.clear()
		}
	}
}

func beatMovesMany(f *fairPlayer, n int64) {
	f.enqueue(append([]entry{in(a1, 9)}, entriesFrom(n, t0+10)...)...)
	f.beat(0, nil, 64, waiter{a1, 5})
}

func beatKeepsMany(f *fairPlayer, n int64) {
	all := entriesFrom(n, t0+10)
	f.enqueue(all...)
	var mine []waiter
	for _, e := range all {
		mine = append(mine, waiter{e.owner, 7})
	}
	f.beat(0, nil, 64, mine...)
}

func evictBeforeMany(f *fairPlayer, n int64) {
	f.enqueue(append([]entry{in(a1, 315000)}, entriesFrom(n, t0+400000)...)...)
	f.evict(in(a1, 315000))
}

func evictMany(f *fairPlayer, n int64) {
	dead := entriesFrom(n, t0+115000)
	f.enqueue(append(entriesFrom(n, t0+115000), in(a1, 400000))...)
	f.evict(dead...)
}

func TestOwnersLeaveLongQueues(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		if testlevel.IsAll() {
			testlevel.NoRace(t, testlevel.OneGoroutine)
		}
		tellAllFair(t, target, fairLeavesLong)
	})
}
