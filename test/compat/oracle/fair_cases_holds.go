package oracle

import "github.com/redlatch/redlatch/codec"

// fairReentryCases are about an owner that enters again, by our own script in the
// one way, by Redisson's acquire in the other.
func fairReentryCases() []Case {
	var all []Case
	for _, attempt := range []func(string, State) Case{trying, queueing} {
		enter := func(does string, before State, lease, target int64) Case {
			c := attempt(does, before).as(target)
			c.Step.Lease = lease
			return c
		}
		held := func(count string) State { return both(lockIs(hashOf(caseLease, caseOwner, count)), alive()) }
		gone := func() State { return waiting(caseFirst, 0, caseSecond, 1) }
		all = append(all,
			enter("enters again, for the same lease", held("1"), caseLease, 2).meant(ownReply),
			enter("enters again, for a longer lease", held("1"), caseLong, 2).meant(ownReply),
			enter("enters again, for a shorter lease", held("1"), caseShort, 2).meant(ownReply, ownLease),
			enter("enters again, and the dead are in front", both(heldBy(caseOwner), gone()), caseLong, 2).meant(ownReply),
			enter("enters a lock again that never expires", lockIs(hashOf(never, caseOwner, "1")), caseLease, 2).meant(ownReply, ownLease),
			enter("enters again with no lease at all", held("1"), 0, 2).meant(ownReply, ownLease),
			enter("enters a lock again that has expired", State{}, caseLease, 2).meant(ownGone),
			enter("enters a lock again that has expired, and others wait", gone(), caseLease, 2).meant(ownGone),
			enter("enters a lock again that another has now", both(heldBy(caseOther), gone()), caseLease, 2).meant(ownGone),
			enter("enters a lock again that is a text now", both(lockIs(textOf(caseLong, "no lock")), gone()), caseLease, 2),
			enter("enters again, sent twice", held("2"), caseLong, 2).meant(ownReply, ownReentry),
			enter("enters again, two others being on their way", held("1"), caseLong, 4).meant(ownReply, ownReentry),
		)
	}
	return all
}

func fairReleaseCases() []Case {
	held := func(left int64, count string) State { return both(lockIs(hashOf(left, caseOwner, count)), alive()) }
	all := forAll("frees %q", freeing, func(name string) State {
		return both(State{name: hashOf(caseShort, caseOwner, "1")}, waitingFor(name, caseFirst, 9000))
	})
	for i := range all {
		all[i].Meant = []string{ownLatch, newLatch}
	}
	return append(all,
		freeing("frees a lock that nobody waits for", heldBy(caseOwner)).meant(ownLatch, newLatch),
		freeing("frees a lock that never expires", held(never, "1")).meant(ownLatch, newLatch),
		freeing("frees a lock with a field of another", lockIs(hashOf(caseLong, caseOther, "4", caseOwner, "1"))).meant(ownLatch, newLatch),
		freeing("gives one hold of two back, to a longer lease", held(caseShort, "2")).as(1).meant(ownLatch, newLatch),
		freeing("gives one hold of two back, to a shorter lease", held(caseLong, "2")).as(1).meant(ownLatch, newLatch),
		freeing("finds it free", State{}).meant(ownLatch, newLatch, fairWasFree),
		freeing("finds it free, and tells the first", alive()).meant(ownLatch, newLatch, fairWasFree),
		freeing("finds it free, late, and tells the first", alive()).as(1).meant(ownLatch, newLatch, fairWasFree),
		freeing("finds it held by another", both(heldBy(caseOther), alive())),
		freeing("finds a text", lockIs(textOf(caseLong, "no lock"))),
		freeing("finds a queue that is a text", both(heldBy(caseOwner), State{codec.QueueKey(caseName): textOf(never, "no queue")})),
		freeing("frees a lock that was entered again meanwhile", held(caseLong, "3")).meant(ownLatch, newLatch, ownCount),
		freeing("gives two holds of three back at once", held(caseLong, "3")).as(1).meant(ownLatch, newLatch, ownCount),
		freeing("gives a hold back, too late", held(caseLong, "1")).as(1).meant(ownLatch, newLatch, ownCount),
		freeing("gives a hold back that was never entered", held(caseLong, "1")).as(2).meant(ownLatch, newLatch, ownCount),
	)
}

// giveUpCases leave the queue.
func giveUpCases() []Case {
	held := func(queue State) State { return both(heldBy(caseOther), queue) }
	three := func() State { return waiting(caseFirst, 9000, caseOwner, 14000, caseSecond, 19000) }
	return append(
		forAll("leaves the queue of %q", givingUp, func(name string) State {
			return both(State{name: hashOf(caseLong, caseOther, "1")}, waitingFor(name, caseOwner, 9000, caseFirst, 14000))
		}),
		givingUp("leaves from the middle", held(three())),
		givingUp("leaves from the end", held(waiting(caseFirst, 9000, caseOwner, 14000))),
		givingUp("leaves from the front", held(waiting(caseOwner, 9000, caseFirst, 14000, caseSecond, 19000))),
		givingUp("leaves alone", held(waiting(caseOwner, 9000))),
		givingUp("was removed before", held(waiting(caseFirst, 9000))),
		givingUp("has nobody to leave", State{}),
		givingUp("has two places", held(waiting(caseOwner, 9000, caseFirst, 14000, caseOwner, 9000, caseSecond, 19000))),
		givingUp("passes one that has two places", held(waiting(caseOwner, 9000, caseFirst, 14000, caseFirst, 14000))),
		givingUp("gives one behind it a deadline that had none", held(waiting(caseOwner, 9000, caseFirst, nil, caseSecond, 19000))),
		givingUp("passes deadlines in another order than the queue", held(waiting(caseOwner, 9000, caseFirst, 19000, caseSecond, 14000))),
		givingUp("passes one without a place", held(both(three(), State{
			codec.TimeoutKey(caseName): zsetOf(map[string]float64{
				caseFirst: caseNow + 9000, caseOwner: caseNow + 14000, caseSecond: caseNow + 19000, "nobody": caseNow + 99000,
			}),
		}))),
		givingUp("finds a queue that is a text", State{codec.QueueKey(caseName): textOf(never, "no queue")}),
		givingUp("leaves a free lock to the next", waiting(caseOwner, 9000, caseFirst, 14000, caseSecond, 19000)).meant(fairGoneFree),
		givingUp("leaves a free lock to the one in front", three()).meant(fairGoneFree),
		givingUp("leaves a free lock to a dead one and the one behind", waiting(caseFirst, 0, caseOwner, 5000, caseSecond, 10000, caseOther, 15000)).
			meant(fairGoneFree),
		givingUp("leaves a free lock to one without a deadline", waiting(caseFirst, nil, caseOwner, 5000, caseSecond, 10000)).meant(fairGoneFree),
		givingUp("leaves a free lock to nobody", waiting(caseOwner, 9000)),
	)
}
