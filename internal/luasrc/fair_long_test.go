package luasrc

import (
	"fmt"

	"github.com/redlatch/redlatch/codec"
)

// fairLong are the stories of long queues, whose deadlines move in chunks.
var fairLong = []fairStory{
	{"5.2 the deadlines of a long queue fall by the wait", takeMovesMany},
	{"5.4 a long queue moves up", leaveBeforeMany},
	{"ours: between many that leave together many stay", leaveAmongMany},
}

// line is n waiters whose deadlines are a millisecond apart.
func entriesFrom(n, first int64) []entry {
	all := make([]entry, n)
	for i := range all {
		all[i] = entry{fmt.Sprintf("waiter %d", i), first + int64(i)}
	}
	return all
}

// takeMovesMany looks at both sides of the ends of chunks, and at more than fits
// on a stack.
func takeMovesMany(f *telling) {
	for _, take := range []func(owner string, now, wait int64) *telling{f.try, f.acquire} {
		for _, n := range []int64{3, 4, 5, 999, 1000, 1001, 9000} {
			f.enqueue(append([]entry{{ownerA1, t0 + 5}}, entriesFrom(n, t0+10)...)...)
			take(ownerA1, t0, fairWait).gives(nil)
			f.leaves(f.heldBy(ownerA1, "1"), f.entries(entriesFrom(n, t0+10-fairWait)...))
			f.command("DEL", f.l, codec.QueueKey(f.l), codec.TimeoutKey(f.l))
		}
	}
}

func leaveBeforeMany(f *telling) {
	held := f.hold()
	for _, n := range []int64{499, 500, 501, 1000, 4500} {
		f.enqueue(append([]entry{{ownerA1, t0 + 5}}, entriesFrom(n, t0+10)...)...)
		f.giveUp(ownerA1, t0, fairWait).gives(nil)
		f.leaves(held, f.entries(entriesFrom(n, t0+10-fairWait)...))
		f.command("DEL", codec.QueueKey(f.l), codec.TimeoutKey(f.l))
	}
}

// leaveAmongMany has every other one leave, each with a wait of its own.
func leaveAmongMany(f *telling) {
	held := f.hold()
	for _, n := range []int64{999, 1000, 1001, 2100} {
		all := entriesFrom(2*n, t0+1_000_000)
		f.enqueue(all...)
		var rest []entry
		var more []leaver
		fall := int64(0)
		for i := 0; i < len(all); i += 2 {
			fall += int64(i%7 + 1)
			more = append(more, leaver{all[i].owner, int64(i%7 + 1)})
			rest = append(rest, entry{all[i+1].owner, all[i+1].deadline - fall})
		}
		f.giveUp(more[0].owner, t0, more[0].wait, more[1:]...).gives(nil)
		f.leaves(held, f.entries(rest...))
		f.command("DEL", codec.QueueKey(f.l), codec.TimeoutKey(f.l))
	}
}
