package oracle

import (
	"fmt"
	"slices"
)

// The names of the divergences of semaphores and latches. Ours is held to its contract in every
// step (see isAsPromised), so that each of these only says where the contract differs from
// Redisson.
const (
	semReply    = "semaphore: reply"
	semMessages = "semaphore: messages"
	semSilent   = "semaphore: a message about no permit"
	semSpoilt   = "semaphore: a key that is no number"
	semLives    = "semaphore add, drain: time to live"

	permitOver    = "permits: leases that are over"
	permitPartial = "permits release: an unknown one among several, from 3.41"
	permitShorter = "permits renewal: a shorter lease"
	permitSpoilt  = "permits renewal: a key of another type"

	latchSpoilt = "latch: a key that is no count"
)

var semaphoreDiverges = []Divergence{
	{Name: semReply, Reason: "a caller learns how many permits there are without another request", Applies: always, Explains: isSemaphoreReply},
	{Name: semMessages, Reason: "a message wakes one of Redisson's asynchronous waiters, however many permits it tells of", Applies: always, Explains: isToldOften},
	{Name: semSilent, Reason: "its waiters would ask in vain", Applies: always, Explains: isNotTold},
	{Name: semSpoilt, Reason: "what another program stores under the name is not lost", Applies: always, Explains: isSpoiltCount},
	{Name: semLives, Reason: "a time to live that was set is meant", Applies: always, Explains: isKeptAlive},
}

var permitDiverges = []Divergence{
	{Name: semReply, Reason: semaphoreDiverges[0].Reason, Applies: always, Explains: isSemaphoreReply},
	{Name: semMessages, Reason: semaphoreDiverges[1].Reason, Applies: always, Explains: isToldOften},
	{Name: semSilent, Reason: semaphoreDiverges[2].Reason, Applies: always, Explains: isNotTold},
	{Name: semSpoilt, Reason: semaphoreDiverges[3].Reason, Applies: always, Explains: isSpoiltCount},
	{Name: semLives, Reason: semaphoreDiverges[4].Reason, Applies: always, Explains: isKeptAlive},
	{Name: permitOver, Reason: "questions change nothing, and an attempt finds all permits that are free", Applies: always, Explains: isPruned},
	{Name: permitPartial, Reason: "a release that is sent again after a lost reply does what is left to do", Applies: allOrNone, Explains: isPartial},
	{Name: permitShorter, Reason: "a late renewal must not cut a longer lease", Applies: always, Explains: isNotShorter},
	{Name: permitSpoilt, Reason: "one spoilt key must not cost other permits their lease", Applies: always, Explains: isSpoiltEnds},
}

var latchDiverges = []Divergence{
	{Name: latchSpoilt, Reason: "what another program stores under the name is not lost", Applies: always, Explains: isSpoiltCount},
}

func allOrNone(r Release, _ Ours) bool { return r.ReleasesAllOrNone() }

// isSemaphoreReply: the replies mean the same.
func isSemaphoreReply(o *Outcome, d Diff) bool {
	if d.What != "reply" {
		return false
	}
	list, _ := o.Ours.Reply.([]any)
	switch o.Step.Op.does {
	case counterTake, permitTake:
		return o.isTheirGrant() == (list == nil)
	case counterAdd, permitSet:
		_, isNumber := o.Ours.Reply.(int64)
		return o.Theirs.Reply == nil && isNumber
	case counterDrain:
		return fmt.Sprint(o.Theirs.Reply) == fmt.Sprint(o.Ours.Reply)
	case permitGive:
		return len(list) == 2 && o.Theirs.Reply == integer(list[0])-integer(list[1])
	case permitGiveAll:
		return len(list) == 2 && o.Theirs.Reply == list[0]
	case permitExtend:
		return len(list) == 1 && o.Theirs.Reply == list[0]
	case permitCountFree:
		return len(list) == 3 && fmt.Sprint(o.Theirs.Reply) == fmt.Sprint(list[1]) // Redisson's may be a text
	case permitCountOut:
		return len(list) == 3 && o.Theirs.Reply == list[2]
	case permitCountAll:
		return len(list) == 3 && o.Theirs.Reply == integer(list[0])*(integer(list[1])+integer(list[2]))
	}
	return false
}

func integer(v any) int64 { n, _ := v.(int64); return n }

func (o *Outcome) theirsTold() int { return len(o.Theirs.Messages) }

// isTheirGrant tells whether Redisson's acquire took the permits: 1, OK, or before 3.22 the id.
func (o *Outcome) isTheirGrant() bool {
	return slices.Contains([]any{int64(1), "OK", o.Step.rawID(0)}, o.Theirs.Reply)
}

// isToldOften: ours has a message for each permit, and Redisson's one for all. The number in it
// is how many permits are free then, but in Redisson's releases of several and where the number
// of all permits is set.
func isToldOften(o *Outcome, d Diff) bool {
	return d.What == "messages" && o.theirsTold() == 1 && len(o.Ours.Messages) > 0
}

// isNotTold: nothing became free, or nothing is.
func isNotTold(o *Outcome, d Diff) bool {
	gives := o.Step.Op.does == permitGive
	return d.What == "messages" && o.theirsTold() == 1 && len(o.Ours.Messages) == 0 && (gives || !o.hasOver())
}

// isSpoiltCount: ours fails and changes nothing.
func isSpoiltCount(o *Outcome, d Diff) bool {
	p := o.pool()
	_, failed := o.Ours.Reply.(Failure)
	return d.What != "check" && !p.isNumber && failed && o.untouched()
}

// isKeptAlive: Redisson has ended the counter's time to live.
func isKeptAlive(o *Outcome, d Diff) bool {
	return d.What == "ttl" && d.Key == o.name() && slices.Contains([]poolAct{counterAdd, counterDrain}, o.Step.Op.does) && d.Theirs == any(int64(never))
}

// hasOver tells whether a lease is over that nothing was done about before the step.
func (o *Outcome) hasOver() bool { return len(o.pool().over(o.Step.Now)) > 0 }

// isPruned: Redisson gives permits back whose leases are over in each step but a single release,
// as many as are asked for in an attempt; ours all of them in an attempt, and none in other steps.
func isPruned(o *Outcome, d Diff) bool {
	return d.What != "check" && o.hasOver() && o.Step.Op.does != permitGive
}

// isPartial: Redisson's has done nothing, since an id of several is unknown.
func isPartial(o *Outcome, d Diff) bool {
	known := 0
	for _, id := range o.Step.rawIDs() {
		if _, ok := o.pool().out[id]; ok {
			known++
		}
	}
	return d.What != "check" && o.Step.Op.does == permitGiveAll && o.Theirs.Reply == int64(0) && known < len(o.Step.IDs)
}

// isNotShorter: the permit's lease is longer than what was asked for.
func isNotShorter(o *Outcome, d Diff) bool {
	end, ok := o.pool().out[o.Step.rawID(0)]
	return o.Step.Op.does == permitExtend && d.What == "value" && ok && end > float64(o.Step.Now+o.Step.Lease)
}

// isSpoiltEnds: ours answers 0, and Redisson's fails.
func isSpoiltEnds(o *Outcome, d Diff) bool {
	return o.Step.Op.does == permitExtend && d.What == "reply" && !o.pool().isSet && o.untouched()
}
