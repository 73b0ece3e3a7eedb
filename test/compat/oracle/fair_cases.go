package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/codec"
)

// The waiters in the cases of the fair lock, and when they wait.
const (
	caseFirst  = "33333333-3333-3333-3333-333333333333:7"
	caseSecond = "44444444-4444-4444-4444-444444444444:0"

	caseNow  = 1795224888000
	caseWait = 5000
)

// fairCases are in the order of the operations.
func fairCases() []Case {
	all := slices.Concat(
		takeCases(), pruneCases(), queueCases(), fairReentryCases(),
		fairReleaseCases(), fairLatchCases(), fairForceCases(), giveUpCases(), oddCases(),
	)
	ops := fairOperations()
	slices.SortStableFunc(all, func(a, b Case) int {
		return cmp.Compare(slices.Index(ops, a.Step.Op), slices.Index(ops, b.Step.Op))
	})
	return all
}

func fairOperations() []*Operation {
	return []*Operation{FairTry, FairAcquire, FairFree, FairForce, FairGiveUp}
}

// waiting is a queue: a waiter and its deadline, from now, each. A waiter without a
// deadline has nil.
func waiting(all ...any) State { return waitingFor(caseName, all...) }

func waitingFor(name string, all ...any) State {
	var waiters []string
	deadlines := map[string]float64{}
	for pair := range slices.Chunk(all, 2) {
		waiter, _ := pair[0].(string)
		waiters = append(waiters, waiter)
		if left, ok := pair[1].(int); ok {
			deadlines[waiter] = float64(caseNow + left)
		}
	}
	s := State{codec.QueueKey(name): listOf(waiters...)}
	if len(deadlines) > 0 {
		s[codec.TimeoutKey(name)] = zsetOf(deadlines)
	}
	return s
}

// both is a state with the keys of two.
func both(a, b State) State {
	all := State{}
	for _, s := range []State{a, b} {
		for name, e := range s {
			all[name] = e
		}
	}
	return all
}

// heldBy is the lock of the cases, held by owner.
func heldBy(owner string) State { return lockIs(hashOf(caseLong, owner, "1")) }

// fairStep is a step of the cases' owner.
func fairStep(op *Operation, does string, before State) Case {
	return Case{Does: does, Before: before, Step: Step{
		Op: op, Names: []string{caseName}, Owner: caseOwner, Lease: caseLease, Now: caseNow, Wait: caseWait,
	}}
}

func trying(does string, before State) Case    { return fairStep(FairTry, does, before) }
func queueing(does string, before State) Case  { return fairStep(FairAcquire, does, before) }
func givingUp(does string, before State) Case  { return fairStep(FairGiveUp, does, before) }
func freeing(does string, before State) Case   { return fairStep(FairFree, does, before).as(0) }
func fairForce(does string, before State) Case { return fairStep(FairForce, does, before) }

// as completes a release or a re-entry with the count to arrive at.
func (c Case) as(target int64) Case {
	c.Step.Target = target
	if c.Step.Op == FairFree {
		c.Step.RequestID = caseLatch
	}
	return c
}

// forAll is a case for each kind of name.
func forAll(does string, step func(does string, before State) Case, before func(name string) State) []Case {
	var all []Case
	for _, name := range caseNames {
		c := step(fmt.Sprintf(does, name), before(name))
		c.Step.Names = []string{name}
		all = append(all, c)
	}
	return all
}

// inBoth is a case for the script that never queues and for the one that does.
func inBoth(does string, before State, meant ...string) []Case {
	return []Case{trying(does, before).meant(meant...), queueing(does, before).meant(meant...)}
}

// since makes two of a case: releases from one on, and those before it, in which it
// means something else.
func (c Case) since(from func(Release) bool, before string) []Case {
	old := c
	old.Does += ", in old releases"
	old.Meant = []string{before}
	old.Of = func(r Release) bool { return !from(r) }
	c.Of = from
	return []Case{c, old}
}

// from leaves older releases out.
func (c Case) from(has func(Release) bool) Case {
	c.Of = has
	return c
}

// alive is a queue of two live waiters, behind another owner's lock.
func alive() State { return waiting(caseFirst, 95000, caseSecond, 100000) }

// takeCases take the lock, enter it again, or are too late.
func takeCases() []Case {
	none := func(string) State { return State{} }
	all := slices.Concat(
		forAll("takes %q, which is free", trying, none),
		forAll("takes %q, which is free", queueing, none),
		inBoth("takes it when it is the owner's turn", waiting(caseOwner, 7000, caseFirst, 9000, caseSecond, 20000)),
		inBoth("brings a deadline forward of one that is not in the queue", State{
			codec.TimeoutKey(caseName): zsetOf(map[string]float64{"nobody": caseNow - 1}),
		}),
		inBoth("loses a deadline without a place when it takes it", State{
			codec.TimeoutKey(caseName): zsetOf(map[string]float64{caseOwner: caseNow + 1000}),
		}),
		inBoth("takes it as the first of two places that it has", waiting(caseOwner, 7000, caseFirst, 9000, caseOwner, 7000)),
		inBoth("enters again, as a new attempt", heldBy(caseOwner)),
		inBoth("enters again, though others wait", both(heldBy(caseOwner), alive())),
		inBoth("enters again beside another", lockIs(hashOf(caseShort, caseOther, "2", caseOwner, "9"))),
		inBoth("leaves other keys alone", both(State{"other": hashOf(caseLong, caseOwner, "1")}, waitingFor("other", caseFirst, 1))),
		inBoth("finds a text", lockIs(textOf(never, "no lock"))),
		inBoth("finds a queue that is a text", State{codec.QueueKey(caseName): textOf(never, "no queue")}),
		inBoth("finds deadlines that are a text", State{codec.TimeoutKey(caseName): textOf(never, "no deadlines")}),
		inBoth("finds a hash that never expires", lockIs(hashOf(never, caseOther, "1")), fairRefusal),
		inBoth("finds it held by another", heldBy(caseOther), fairRefusal),
		inBoth("finds it free, but not its turn", alive(), fairRefusal),
		inBoth("finds it held, and others wait", both(heldBy(caseOther), alive()), fairRefusal),
	)
	for i := range 2 {
		c := inBoth("takes it with no lease at all", waiting(caseOwner, 1, caseFirst, 2))[i]
		c.Step.Lease = 0
		all = append(all, c)
	}
	return all
}

// pruneCases find dead waiters, at the boundary and beyond.
func pruneCases() []Case {
	gone := waiting(caseFirst, 0, caseSecond, 1)
	all := slices.Concat(
		inBoth("removes the one whose deadline is now", waiting(caseFirst, 0)),
		inBoth("leaves the one whose deadline is in a millisecond", waiting(caseFirst, 1), fairRefusal),
		inBoth("removes two, and finds a third", waiting(caseFirst, -300000, caseSecond, 0, caseOther, 1), fairRefusal),
		inBoth("leaves the dead behind one that lives", waiting(caseFirst, 1, caseSecond, -5), fairRefusal),
		inBoth("removes itself, and the lock is held", both(heldBy(caseOther), waiting(caseOwner, 0)), fairRefusal),
		inBoth("removes the dead before it enters again", both(heldBy(caseOwner), gone)),
	)
	return append(all,
		freeing("removes the dead and tells the one behind", both(heldBy(caseOwner), gone)).meant(ownLatch, newLatch),
		freeing("removes the dead, though it keeps a hold", both(lockIs(hashOf(caseLong, caseOwner, "2")), gone)).as(1).meant(ownLatch, newLatch),
		freeing("removes the dead, though it is not the owner's", both(heldBy(caseOther), gone)),
		fairForce("removes the dead and tells the one behind", both(heldBy(caseOther), gone)),
		fairForce("removes the dead of a free lock", gone),
	)
}

// queueCases stand in the queue, or stand there already.
func queueCases() []Case {
	queued := func(does string, left int64, before State) []Case {
		before[caseName] = hashOf(left, caseOther, "1")
		if left == 0 {
			delete(before, caseName)
		}
		return queueing(does, before).meant(fairRefusal).since(Release.TellsQueuedLeft, oldQueued)
	}
	all := slices.Concat(
		forAll("is the first in the queue of %q", queueing, func(name string) State {
			return State{name: hashOf(caseLong, caseOther, "1")}
		}),
		[]Case{
			queueing("is queued behind one that is overdue", both(heldBy(caseOther), waiting(caseFirst, 10, caseSecond, -3000))),
			queueing("is queued once more, having a place and no deadline", both(heldBy(caseOther), waiting(caseOwner, nil, caseFirst, 10))).
				from(Release.BearsHeadless),
		},
		queued("stands in the queue already, and is the first", caseLong, waiting(caseOwner, 7000, caseFirst, 9000)),
		queued("stands in the queue already, and is the second", caseLong, waiting(caseFirst, 9000, caseOwner, 95000)),
		queued("stands in the queue of a lock that never expires", never, waiting(caseOwner, 7000)),
		queued("stands in the queue of a free lock, and is the second", 0, waiting(caseFirst, 9000, caseOwner, 17000)),
		queued("has a deadline and no place", caseLong, State{
			codec.TimeoutKey(caseName): zsetOf(map[string]float64{caseOwner: caseNow + 9000}),
		}),
	)
	for i := range all {
		if len(all[i].Meant) == 0 {
			all[i].Meant = []string{fairRefusal}
		}
	}
	return all
}

// oddCases are waiters without a deadline.
func oddCases() []Case {
	head := func() State { return waiting(caseFirst, nil, caseSecond, 9000) }
	last := func() State { return both(heldBy(caseOther), waiting(caseFirst, 9000, caseSecond, nil)) }
	return slices.Concat(
		trying("finds a first waiter without a deadline", head()).meant(fairRefusal).since(Release.BearsHeadless, oldHead),
		queueing("finds a first waiter without a deadline", head()).meant(fairRefusal).since(Release.BearsHeadless, oldHead),
		freeing("tells a first waiter without a deadline", both(heldBy(caseOwner), head())).meant(ownLatch, newLatch).
			since(Release.BearsHeadless, oldHead),
		fairForce("tells a first waiter without a deadline", both(heldBy(caseOther), head())).since(Release.BearsHeadless, oldHead),
		trying("takes it as a first waiter without a deadline", waiting(caseOwner, nil, caseFirst, 9000)).
			since(Release.BearsHeadless, oldHead),
		queueing("is queued behind one without a deadline", last()).meant(fairRefusal).since(Release.BearsLastless, oldLast),
	)
}

func fairForceCases() []Case {
	return append(
		forAll("takes %q away", fairForce, func(name string) State {
			return both(State{name: hashOf(caseShort, caseOther, "2")}, waitingFor(name, caseFirst, 9000))
		}),
		fairForce("finds it free", State{}),
		fairForce("finds it free, and tells nobody", alive()),
		fairForce("takes a lock away that nobody waits for", heldBy(caseOther)),
		fairForce("takes a lock away that never expires", both(lockIs(hashOf(never, caseOwner, "1", caseOther, "1")), alive())),
		fairForce("deletes a text", lockIs(textOf(caseLong, "no lock"))),
		fairForce("finds a queue that is a text", both(heldBy(caseOther), State{codec.QueueKey(caseName): textOf(never, "no queue")})),
	)
}

// fairLatchCases are releases that are sent again, when the first one has left its
// latch.
func fairLatchCases() []Case {
	latch := codec.LatchKey(caseName, caseLatch)
	again := func(does, first string, before State) Case {
		c := freeing(does, both(State{latch: textOf(caseShort, first)}, before))
		c.Step.Repeat, c.Of = true, Release.HasLatch
		return c
	}
	gone := waiting(caseFirst, 0, caseSecond, 1)
	noQueue := func() State { return State{codec.QueueKey(caseName): textOf(never, "no queue")} }
	noDeadlines := func() State { return State{codec.TimeoutKey(caseName): textOf(never, "no deadlines")} }
	other := freeing("knows the latch of another release for another's", both(heldBy(caseOwner), State{
		codec.LatchKey(caseName, strings.Repeat("f", 32)): textOf(caseShort, "0"),
	})).meant(ownLatch)
	other.Of = Release.HasLatch
	return []Case{
		again("frees it, sent twice", "1", State{}).meant(ownCount),
		again("frees it, sent twice, and the dead are in front", "1", gone).meant(ownCount),
		again("frees it, sent twice, when another has it", "1", both(heldBy(caseOther), gone)).meant(ownCount),
		again("frees it, sent twice, when the owner has it again", "1", both(heldBy(caseOwner), alive())).meant(ownCount),
		again("frees it, sent twice, when it is a text", "1", lockIs(textOf(caseLong, "no lock"))).meant(ownCount),
		again("frees it, sent twice, when the queue is a text", "1", noQueue()).meant(ownCount),
		again("frees it, sent twice, when the queue is a text and the owner has it again", "1", both(heldBy(caseOwner), noQueue())).meant(ownCount),
		again("frees it, sent twice, when the deadlines are a text", "1", both(alive(), noDeadlines())).meant(ownCount),
		again("frees it, sent twice, when the deadlines are a text and nobody waits", "1", noDeadlines()).meant(ownCount),
		again("gives one hold of two back, sent twice", "0", both(heldBy(caseOwner), alive())).as(1),
		again("gives one hold of two back, sent twice, after the other", "0", alive()).as(1).meant(ownCount),
		other,
	}
}
