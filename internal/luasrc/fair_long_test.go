package luasrc

import (
	"fmt"

	"github.com/redlatch/redlatch/codec"
)

// fairLong are the stories of long queues, whose deadlines move in chunks.
var fairLong = []fairStory{
	{"5.2 the deadlines of a long queue fall by the wait", takeMovesMany},
	{"5.4 a long queue moves up", leaveBeforeMany},
}

// line is n waiters whose deadlines are a millisecond apart.
func line(n, first int64) []seat {
	all := make([]seat, n)
	for i := range all {
		all[i] = seat{fmt.Sprintf("waiter %d", i), first + int64(i)}
	}
	return all
}

// sitAll is sit in one step.
func (f *telling) sitAll(all []seat) {
	push, add := []any{codec.QueueKey(f.l)}, []any{codec.TimeoutKey(f.l)}
	for _, s := range all {
		push, add = append(push, s.owner), append(add, s.deadline, s.owner)
	}
	f.command("RPUSH", push...)
	f.command("ZADD", add...)
}

// takeMovesMany looks at both sides of the ends of chunks, and at more than fits
// on a stack.
func takeMovesMany(f *telling) {
	for _, take := range []func(owner string, now, wait int64) *telling{f.try, f.acquire} {
		for _, n := range []int64{499, 500, 501, 1000, 4500} {
			f.sitAll(append([]seat{{ownerA1, t0 + 5}}, line(n, t0+10)...))
			take(ownerA1, t0, fairWait).gives(nil)
			f.leaves(f.heldBy(ownerA1, "1"), f.seats(line(n, t0+10-fairWait)...))
			f.command("DEL", f.l, codec.QueueKey(f.l), codec.TimeoutKey(f.l))
		}
	}
}

func leaveBeforeMany(f *telling) {
	held := f.hold()
	for _, n := range []int64{499, 500, 501, 1000, 4500} {
		f.sitAll(append([]seat{{ownerA1, t0 + 5}}, line(n, t0+10)...))
		f.giveUp(ownerA1, t0, fairWait).gives(nil)
		f.leaves(held, f.seats(line(n, t0+10-fairWait)...))
		f.command("DEL", codec.QueueKey(f.l), codec.TimeoutKey(f.l))
	}
}
