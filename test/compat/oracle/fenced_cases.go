package oracle

import (
	"fmt"

	"github.com/redlatch/redlatch/codec"
)

// fencing is a case in which the counter stands at a number; none when there is none.
func fencing(op *Operation, does, counter string, before State, target int64) Case {
	c := Case{Does: does, Before: State{}, Step: Step{Op: op, Names: []string{caseName}, Owner: caseOwner, Lease: caseLease, Target: target}}
	for name, e := range before {
		c.Before[name] = e
	}
	if counter != "" {
		c.Before[codec.TokenKey(caseName)] = textOf(never, counter)
	}
	return c
}

// lasting is the case with another lease.
func (c Case) lasting(lease int64) Case {
	c.Step.Lease = lease
	return c
}

func fencedCases() []Case {
	var all []Case
	for _, op := range []*Operation{AcquireToken, AcquireCounted} {
		for _, name := range caseNames {
			c := fencing(op, fmt.Sprintf("takes %q, which is free", name), "", State{}, 0).meant(fencedGrant)
			c.Step.Names = []string{name}
			all = append(all, c)
		}
		all = append(all, fencedStates(op)...)
		all = append(all, fencedCounters(op)...)
		all = append(all, fencedReentries(op)...)
	}
	return all
}

func fencedStates(op *Operation) []Case {
	return []Case{
		fencing(op, "enters again, as a new attempt", "7", lockIs(hashOf(caseShort, caseOwner, "1")), 0).meant(fencedGrant),
		fencing(op, "finds it held", "7", lockIs(hashOf(caseLong, caseOther, "3")), 0).meant(fencedRefusal),
		fencing(op, "finds it held for ever", "7", lockIs(hashOf(never, caseOther, "1")), 0).meant(fencedRefusal),
		fencing(op, "finds it held by two", "7", lockIs(hashOf(caseShort, caseOther, "1", caseOwner, "1")), 0).meant(fencedGrant),
		fencing(op, "takes a free lock with no lease at all", "7", State{}, 0).lasting(0).meant(fencedGrant),
		fencing(op, "finds a text", "7", lockIs(textOf(never, "no lock")), 0),
		fencing(op, "leaves other keys alone", "7", State{"other": hashOf(caseLong, caseOwner, "1")}, 0).meant(fencedGrant),
	}
}

func fencedCounters(op *Operation) []Case {
	return []Case{
		fencing(op, "takes it, the counter being negative", "-3", State{}, 0).meant(fencedGrant),
		fencing(op, "takes it, the counter being 2^53-2", "9007199254740990", State{}, 0).meant(fencedGrant),
		fencing(op, "takes it, the counter being 2^53", "9007199254740992", State{}, 0).meant(fencedGrant),
		fencing(op, "takes it, the counter being 2^63-2", "9223372036854775806", State{}, 0).meant(fencedGrant),
		fencing(op, "cannot count above 2^63-1", "9223372036854775807", State{}, 0),
		fencing(op, "cannot count what is no number", "no number", State{}, 0),
		fencing(op, "cannot count a list", "", State{codec.TokenKey(caseName): listOf("1")}, 0),
	}
}

func fencedReentries(op *Operation) []Case {
	held := func(count string) State { return lockIs(hashOf(caseLease, caseOwner, count)) }
	return []Case{
		fencing(op, "enters again, for a longer lease", "7", held("1"), 2).lasting(caseLong).meant(fencedGrant),
		fencing(op, "enters again, for a shorter lease", "7", held("1"), 2).lasting(caseShort).meant(fencedGrant, ownLease),
		fencing(op, "enters a lock again that has expired", "7", State{}, 2).meant(fencedGone),
		fencing(op, "enters a lock again that another has now", "7", lockIs(hashOf(caseLong, caseOther, "1")), 2).meant(fencedGone),
		fencing(op, "enters again, sent twice", "7", held("2"), 2).lasting(caseLong).meant(fencedGrant, ownReentry),
		fencing(op, "enters again, the counter being no number", "no number", held("1"), 2).lasting(caseLong),
	}
}
