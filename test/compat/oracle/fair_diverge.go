package oracle

import (
	"math"
	"slices"
)

// The names of the fair lock's divergences beside those that it shares with the
// plain lock.
const (
	fairRefusal  = "acquire: what a refusal says"
	fairWasFree  = "release: the lock is free"
	fairGoneFree = "give up: the lock is free"
	oldHead      = "a first waiter without a deadline, before 3.31"
	oldQueued    = "acquire: already queued, before 3.32"
	oldLast      = "acquire: a last waiter without a deadline, before 3.45"
)

// Releases whose fair scripts differ.
func beforeHeadless(r Release, _ Ours) bool { return !r.BearsHeadless() }
func beforeLeft(r Release, _ Ours) bool     { return !r.TellsQueuedLeft() }
func beforeLastless(r Release, _ Ours) bool { return !r.BearsLastless() }

// fairDiverges has the differences between releases first: where an old one fails, nothing
// else can be compared.
var fairDiverges = slices.Concat([]Divergence{
	{
		Name:     oldHead,
		Reason:   "later releases do the same",
		Applies:  beforeHeadless,
		Explains: isOldHead,
	},
	{
		Name:     oldLast,
		Reason:   "later releases do the same",
		Applies:  beforeLastless,
		Explains: isOldLast,
	},
	{
		Name:     oldQueued,
		Reason:   "otherwise a waiter sleeps past the end of a dead holder's lease",
		Applies:  beforeLeft,
		Explains: isOldQueued,
	},
	{
		Name:     fairRefusal,
		Reason:   "one waiter asks for all of its process and wakes the next; a removed waiter notices",
		Applies:  always,
		Explains: isFairRefusal,
	},
	{
		Name:     fairWasFree,
		Reason:   "a lost hold is not reported as released",
		Applies:  always,
		Explains: isAnswerForFreeLock,
	},
	{
		Name:     fairGoneFree,
		Reason:   "the leaving waiter may be the only one that was told; the others would sleep to their poll",
		Applies:  always,
		Explains: isPassedOn,
	},
}, fromPlain(map[string]func(*Outcome, Diff) bool{
	ownLatch:   isLatch,
	newLatch:   isNewLatch,
	ownCount:   isFairTarget,
	ownReply:   isReentryReply,
	ownGone:    isFairRefusedReentry,
	ownLease:   isKeptLease,
	ownReentry: isRaisedCount,
}))

// fromPlain returns divergences of the plain lock that the fair lock has as well,
// with what explains them there.
func fromPlain(explains map[string]func(*Outcome, Diff) bool) []Divergence {
	var all []Divergence
	for _, d := range plainDiverges {
		if explain, ok := explains[d.Name]; ok {
			d.Explains = explain
			all = append(all, d)
		}
	}
	return all
}

// scriptFailed is the reply to a script that has made a mistake.
var scriptFailed any = Failure("ERR")

// isOldHead: the first in the queue has no deadline, so Redisson's script fails.
func isOldHead(o *Outcome, _ Diff) bool {
	l, ok := o.queueState()
	return o.Step.Op != FairGiveUp && o.Theirs.Reply == scriptFailed && ok && len(l.waiters) > 0 && l.lacks(l.waiters[0])
}

// isOldLast is the same for the last in the queue, behind which the owner is queued.
func isOldLast(o *Outcome, _ Diff) bool {
	l, ok := o.queueState()
	return o.Step.Op == FairAcquire && o.Theirs.Reply == scriptFailed && ok && len(l.waiters) > 0 &&
		l.lacks(l.waiters[len(l.waiters)-1])
}

// isOldQueued: Redisson's reply is the deadline of the one before this waiter, ours
// what the lock has left.
func isOldQueued(o *Outcome, d Diff) bool {
	l, _ := o.queueState()
	deadline, queued := l.deadlines[o.Step.Owner]
	return queued && o.Step.Op == FairAcquire && d.What == "reply" && o.hasMoreLeft() &&
		o.Theirs.Reply == int64(deadline)-o.Step.Wait-o.Step.Now
}

// isFairRefusal: a refusal of ours begins with Redisson's number and says more. The
// reply of the script that never queues is no number in Redisson.
func isFairRefusal(o *Outcome, d Diff) bool {
	if d.What != "reply" || o.isReentry() {
		return false
	}
	if o.Step.Op == FairTry {
		return o.Theirs.Reply == int64(1) && o.hasMoreLeft()
	}
	list, _ := o.Ours.Reply.([]any)
	return o.Step.Op == FairAcquire && o.hasMoreLeft() && o.sameTimeLeft(o.Theirs.Reply, list[0])
}

// hasMoreLeft tells whether our reply is a refusal that says what it should.
func (o *Outcome) hasMoreLeft() bool {
	list, _ := o.Ours.Reply.([]any)
	if len(list) < 2 || !o.isHolder(list[1]) {
		return false
	}
	left, isTime := list[0].(int64)
	if o.Step.Op == FairTry {
		return isTime && len(list) == 2 && o.isLeft(left)
	}
	l, ok := o.queueState()
	if !ok || !isTime || len(list) != 4 {
		return false
	}
	_, queued := l.deadlines[o.Step.Owner]
	return queued == (list[3] == int64(0)) && list[2] == l.head(o.Step.Owner) &&
		(!queued || o.isLeft(left) || left == 0 && !o.hasLeft())
}

// isHolder reports whether a text is a holder of the step's lock, or empty when it is free.
func (o *Outcome) isHolder(text any) bool {
	holder, ok := text.(string)
	fields, _ := o.Prior[o.name()].Value.(map[string]string)
	_, holds := fields[holder]
	return ok && (holds || holder == "" && len(fields) == 0)
}

// hasLeft tells whether the step's lock will expire.
func (o *Outcome) hasLeft() bool {
	e, there := o.Prior[o.name()]
	return there && e.Expires != never
}

// isLeft tells whether a number is what the step's lock had left, as PTTL tells it.
func (o *Outcome) isLeft(left int64) bool {
	e, there := o.Prior[o.name()]
	switch {
	case !there:
		return left == -2
	case e.Expires == never:
		return left == -1
	}
	late := e.Expires - left - o.At
	return left >= 0 && late >= 0 && late <= o.Elapsed
}

// isAnswerForFreeLock: the lock was free, and ours answers 2, as does its latch.
func isAnswerForFreeLock(o *Outcome, d Diff) bool {
	_, locked := o.Prior[o.name()]
	_, latched := o.Prior[o.Step.latch()]
	if locked || latched || o.Step.Op != FairFree {
		return false
	}
	if d.What == "reply" {
		return d.Theirs == int64(1) && d.Ours == int64(2)
	}
	return d.What == "value" && d.Key == o.Step.latch() && d.Theirs == "1" && d.Ours == "2"
}

// isFairTarget is isTarget for the fair lock. Sent again, ours removes dead waiters and
// wakes the first in the queue again, or sees that one of its keys has become something
// else, where Redisson's sees its latch.
func isFairTarget(o *Outcome, d Diff) bool {
	s := o.Step
	count, isLock := o.count()
	switch {
	case s.Op != FairFree || !o.onlyPruned():
		return false
	case s.Repeat:
		return o.isAboutFair(d) && o.isAsFairReleased()
	}
	return isLock && count > 0 && s.Target != count-1 && o.isAbout(d) && o.isAsFairReleased()
}

// isAsFairReleased tells whether our side is as the contract of our release says.
func (o *Outcome) isAsFairReleased() bool {
	s, reply := o.Step, o.Ours.Reply
	count, isLock := o.count()
	_, before := o.Prior[o.name()]
	_, after := o.Ours.After[o.name()]
	reported := slices.Equal(o.Ours.Messages, o.wakeUps())
	switch {
	case !isLock || o.isSpoilt():
		return reply == wrongType && o.unchanged()
	case !before:
		return reply == int64(2) && !after && reported
	case count == 0:
		return reply == nil && o.unchanged()
	case s.Target >= count:
		return reply == int64(0) && o.unchanged()
	case s.Target > 0:
		return reply == int64(0) && o.hasOnly(s.Target) && len(o.Ours.Messages) == 0
	}
	return reply == int64(1) && !after && reported
}

// isFairRefusedReentry: the owner has no hold that ours could enter again. Redisson
// takes the lock, queues the owner, or refuses.
func isFairRefusedReentry(o *Outcome, d Diff) bool {
	count, isLock := o.count()
	return o.isReentry() && o.isAboutFair(d) && d.What != "messages" && isLock && count == 0 &&
		o.Ours.Reply == nil && o.unchanged() && o.onlyPruned()
}

// isPassedOn: a waiter has left, the lock is free, and ours tells all in front, up
// to the first that is not overdue.
func isPassedOn(o *Outcome, d Diff) bool {
	_, locked := o.Prior[o.name()]
	if o.Step.Op != FairGiveUp || d.What != "messages" || locked || len(o.Theirs.Messages) > 0 {
		return false
	}
	before, ok1 := queueStateOf(o.Prior, o.name())
	after, ok2 := queueStateOf(o.Ours.After, o.name())
	var want []string
	for _, waiter := range before.waiters {
		if waiter == o.Step.Owner {
			continue
		}
		want = append(want, o.wakeUp(waiter))
		deadline, has := after.deadlines[waiter]
		if !has {
			deadline = math.Inf(1)
		}
		if deadline > float64(o.Step.Now) {
			break
		}
	}
	return ok1 && ok2 && slices.Equal(want, o.Ours.Messages)
}
