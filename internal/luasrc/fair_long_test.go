package luasrc

import (
	"fmt"
	"slices"

	"github.com/redlatch/redlatch/codec"
)

// fairLong are the stories of long queues, whose deadlines move in chunks.
var fairLong = []fairStory{
	{"5.2 the deadlines of a long queue fall by the wait", takeMovesMany},
	{"5.4 a long queue moves up", leaveBeforeMany},
	{"ours: between many that leave together many stay", leaveAmongMany},
	{"5.4 leavers are found wherever they are in a long queue", leaveLongQueues},
	{"5.4 the first of several places counts in a long queue", leaveSeveralPlacesOfMany},
	{"5.4 an owner with only a deadline leaves a long queue", leaveManyWithoutPlace},
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

// leaveLongQueues has owners leave on both sides of the ends of the parts that are read, and one
// that is not queued.
func leaveLongQueues(f *telling) {
	held := f.hold()
	for _, n := range []int{999, 1000, 1001, 2000, 2001} {
		all := entriesFrom(int64(n), t0+1_000_000)
		last := all[n-1].owner
		for _, leavers := range [][]string{
			{last}, {all[n-999].owner}, {all[max(0, n-1000)].owner}, {all[max(0, n-1001)].owner, last},
			{all[0].owner, last}, {last, all[0].owner}, {ownerA1}, {all[n-3].owner, ownerA1},
		} {
			f.enqueue(all...)
			var more []leaver
			for _, owner := range leavers {
				more = append(more, leaver{owner, 7})
			}
			f.giveUp(leavers[0], t0, 7, more...).gives(nil)
			f.leaves(held, f.entries(restOf(all, leavers, 7)...))
			f.command("DEL", codec.QueueKey(f.l), codec.TimeoutKey(f.l))
		}
	}
}

// restOf is a queue that owners have left, each with this wait.
func restOf(all []entry, leavers []string, wait int64) (rest []entry) {
	fall := int64(0)
	for _, e := range all {
		if slices.Contains(leavers, e.owner) {
			fall += wait
			continue
		}
		rest = append(rest, entry{e.owner, e.deadline - fall})
	}
	return rest
}

func leaveSeveralPlacesOfMany(f *telling) {
	held := f.hold()
	all := entriesFrom(1500, t0+1_000_000)
	f.enqueue(all...)
	f.command("RPUSH", codec.QueueKey(f.l), all[2].owner)
	f.giveUp(all[2].owner, t0, 7).gives(nil)
	f.leaves(held, f.entries(restOf(all, []string{all[2].owner}, 7)...))
}

// leaveManyWithoutPlace has as many deadlines as places, although keys were damaged.
func leaveManyWithoutPlace(f *telling) {
	held := f.hold()
	all := entriesFrom(1000, t0+1_000_000)
	f.enqueue(all...)
	f.command("ZREM", codec.TimeoutKey(f.l), all[5].owner)
	f.command("ZADD", codec.TimeoutKey(f.l), t0, ownerA1)
	f.giveUp(all[997].owner, t0, 7, leaver{ownerA1, 7}).gives(nil)
	rest := restOf(all, []string{all[997].owner}, 7)
	deadlines := timeouts{}
	var owners []string
	for _, e := range rest {
		owners = append(owners, e.owner)
		deadlines[e.owner] = float64(e.deadline)
	}
	delete(deadlines, all[5].owner)
	f.leaves(held, f.queue(owners...), f.timeouts(deadlines))
}
