package oracle

import (
	"fmt"
	"slices"
	"strconv"
)

var semaphoreDiverges = []Divergence{
	{"semaphore: reply", "a caller learns the number of permits without another request", always, isSemaphoreReply},
	{"semaphore: messages", "a message wakes one asynchronous waiter of Redisson, regardless of its number",
		always, isToldOften},
	{"semaphore: message without a free permit", "its waiters would try in vain", always, isNotTold},
	{"semaphore: value that is not a number", "another program's data is not lost", always,
		isSpoiltCount},
	{"semaphore add, drain: time to live", "a time to live was set on purpose", always, isKeptAlive},
}

var permitDiverges = append(slices.Clone(semaphoreDiverges), []Divergence{
	{"permits: expired leases", "queries change nothing, and an attempt finds all free permits",
		always, isPruned},
	{
		"permits release: unknown ID among several, from 3.41", "a retry after a lost reply releases the rest",
		func(r Release, _ Ours) bool { return r.ReleasesAllOrNone() }, isPartial,
	},
	{"permits renewal: a shorter lease", "a late renewal must not shorten a lease", always, isNotShorter},
	{"permits renewal: a key of another type", "one wrong key must not cost other permits their lease", always,
		isSpoiltEnds},
}...)

var latchDiverges = []Divergence{
	{"latch: value that is not a count", "another program's data is not lost", always, isSpoiltCount},
}

var replySize = map[act]int{give: 2, giveAll: 2, extend: 1, countFree: 3, countOut: 3, countAll: 3}

func isSemaphoreReply(o *Outcome, d Diff) bool {
	list, isList := o.Ours.Reply.([]any)
	n := make([]int64, 3)
	for i, v := range list[:min(len(list), len(n))] {
		n[i], _ = v.(int64)
	}
	theirs, act := o.Theirs.Reply, o.Step.Op.act
	if size, fixed := replySize[act]; d.What != "reply" || fixed && size != len(list) {
		return false
	}
	switch act {
	case take: // Redisson returns 1, OK or, in releases before 3.22, the ID
		granted := slices.Contains([]any{int64(1), "OK", o.Step.rawID(0)}, theirs)
		return granted != isList
	case add, setAll:
		_, isNumber := o.Ours.Reply.(int64)
		return theirs == nil && isNumber
	case drain:
		return fmt.Sprint(theirs) == fmt.Sprint(o.Ours.Reply)
	case give:
		return theirs == n[0]-n[1]
	case giveAll, extend:
		return theirs == n[0]
	case countFree:
		return fmt.Sprint(theirs) == fmt.Sprint(n[1])
	case countOut:
		return theirs == n[2]
	case countAll:
		return theirs == n[0]*(n[1]+n[2])
	}
	return false
}

func isToldOften(o *Outcome, d Diff) bool {
	return d.What == "messages" && len(o.Theirs.Messages) == 1 && len(o.Ours.Messages) > 0
}

func isNotTold(o *Outcome, d Diff) bool {
	return d.What == "messages" && len(o.Theirs.Messages) == 1 && len(o.Ours.Messages) == 0 &&
		(o.Step.Op.act == give || !o.hasOver())
}

func isSpoiltCount(o *Outcome, _ Diff) bool {
	e, there := o.Prior[o.name()]
	text, _ := e.Value.(string)
	_, err := strconv.ParseInt(text, 10, 64)
	_, failed := o.Ours.Reply.(Failure)
	return there && err != nil && failed && o.untouched()
}

func isKeptAlive(o *Outcome, d Diff) bool {
	acts := []act{add, drain}
	return d.What == "ttl" && d.Key == o.name() && slices.Contains(acts, o.Step.Op.act) && d.Theirs == any(int64(never))
}

func (o *Outcome) ends() map[string]float64 {
	ends, _ := o.Prior[o.Step.permitKeys()[1]].Value.(map[string]float64)
	return ends
}

func (o *Outcome) hasOver() bool {
	for _, end := range o.ends() {
		if end >= 0 && end <= float64(o.Step.Now) {
			return true
		}
	}
	return false
}

func isPruned(o *Outcome, _ Diff) bool { return o.hasOver() && o.Step.Op.act != give }

func isPartial(o *Outcome, _ Diff) bool {
	unknown := slices.ContainsFunc(o.Step.rawIDs(), func(id string) bool { _, ok := o.ends()[id]; return !ok })
	return o.Step.Op.act == giveAll && o.Theirs.Reply == int64(0) && unknown
}

func isNotShorter(o *Outcome, d Diff) bool {
	end := o.ends()[o.Step.rawID(0)]
	return o.Step.Op.act == extend && d.What == "value" && end > float64(o.Step.Now+o.Step.Lease)
}

func isSpoiltEnds(o *Outcome, d Diff) bool {
	return o.Step.Op.act == extend && d.What == "reply" && o.ends() == nil && o.untouched()
}
