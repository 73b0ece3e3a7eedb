package oracle

import (
	"fmt"
	"slices"
	"strconv"
)

var semaphoreDiverges = []Divergence{
	{"semaphore: reply", "a caller learns how many permits there are without another request", always, isSemaphoreReply},
	{"semaphore: messages", "a message wakes one of Redisson's asynchronous waiters, however many permits it tells of",
		always, isToldOften},
	{"semaphore: a message about no permit", "its waiters would ask in vain", always, isNotTold},
	{"semaphore: a key that is no number", "what another program stores under the name is not lost", always,
		isSpoiltCount},
	{"semaphore add, drain: time to live", "a time to live that was set is meant", always, isKeptAlive},
}

var permitDiverges = append(slices.Clone(semaphoreDiverges), []Divergence{
	{"permits: leases that are over", "questions change nothing, and an attempt finds all permits that are free",
		always, isPruned},
	{
		"permits release: an unknown one among several, from 3.41", "a release that is sent again after a lost reply does what is left to do",
		func(r Release, _ Ours) bool { return r.ReleasesAllOrNone() }, isPartial,
	},
	{"permits renewal: a shorter lease", "a late renewal must not cut a longer lease", always, isNotShorter},
	{"permits renewal: a key of another type", "one spoilt key must not cost other permits their lease", always,
		isSpoiltEnds},
}...)

var latchDiverges = []Divergence{
	{"latch: a key that is no count", "what another program stores under the name is not lost", always, isSpoiltCount},
}

// replySize is the number of numbers in our reply.
var replySize = map[act]int{give: 2, giveAll: 2, extend: 1, countFree: 3, countOut: 3, countAll: 3}

// isSemaphoreReply: the replies mean the same.
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
	case take: // Redisson's is 1, OK, or before 3.22 the id
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
		return fmt.Sprint(theirs) == fmt.Sprint(n[1]) // Redisson's may be a text
	case countOut:
		return theirs == n[2]
	case countAll:
		return theirs == n[0]*(n[1]+n[2])
	}
	return false
}

// isToldOften: ours sends a message for each permit, and Redisson one for all.
func isToldOften(o *Outcome, d Diff) bool {
	return d.What == "messages" && len(o.Theirs.Messages) == 1 && len(o.Ours.Messages) > 0
}

// isNotTold: nothing became free, or nothing is.
func isNotTold(o *Outcome, d Diff) bool {
	return d.What == "messages" && len(o.Theirs.Messages) == 1 && len(o.Ours.Messages) == 0 &&
		(o.Step.Op.act == give || !o.hasOver())
}

// isSpoiltCount: ours fails and changes nothing.
func isSpoiltCount(o *Outcome, _ Diff) bool {
	e, there := o.Prior[o.name()]
	text, _ := e.Value.(string)
	_, err := strconv.ParseInt(text, 10, 64)
	_, failed := o.Ours.Reply.(Failure)
	return there && err != nil && failed && o.untouched()
}

// isKeptAlive: Redisson has ended the counter's time to live.
func isKeptAlive(o *Outcome, d Diff) bool {
	acts := []act{add, drain}
	return d.What == "ttl" && d.Key == o.name() && slices.Contains(acts, o.Step.Op.act) && d.Theirs == any(int64(never))
}

// ends are the permits that were out before the step.
func (o *Outcome) ends() map[string]float64 {
	ends, _ := o.Prior[o.Step.permitKeys()[1]].Value.(map[string]float64)
	return ends
}

// hasOver reports whether the lease of a permit was over before the step.
func (o *Outcome) hasOver() bool {
	for _, end := range o.ends() {
		if end >= 0 && end <= float64(o.Step.Now) {
			return true
		}
	}
	return false
}

// isPruned: Redisson releases permits whose leases are over in each step but a single release,
// as many as an attempt asks for; ours all of them in an attempt, and none in other steps.
func isPruned(o *Outcome, _ Diff) bool { return o.hasOver() && o.Step.Op.act != give }

// isPartial: Redisson has done nothing, since one of several ids is unknown.
func isPartial(o *Outcome, _ Diff) bool {
	unknown := slices.ContainsFunc(o.Step.rawIDs(), func(id string) bool { _, ok := o.ends()[id]; return !ok })
	return o.Step.Op.act == giveAll && o.Theirs.Reply == int64(0) && unknown
}

// isNotShorter: the permit's lease is longer than the new one.
func isNotShorter(o *Outcome, d Diff) bool {
	end := o.ends()[o.Step.rawID(0)]
	return o.Step.Op.act == extend && d.What == "value" && end > float64(o.Step.Now+o.Step.Lease)
}

// isSpoiltEnds: ours returns 0, and Redisson fails.
func isSpoiltEnds(o *Outcome, d Diff) bool {
	return o.Step.Op.act == extend && d.What == "reply" && o.ends() == nil && o.untouched()
}
