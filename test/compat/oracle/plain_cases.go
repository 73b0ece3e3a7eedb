package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/codec"
)

// The owners and values of the cases of the plain lock.
const (
	caseOwner = "11111111-1111-1111-1111-111111111111:1"
	caseOther = "22222222-2222-2222-2222-222222222222:-9223372036854775808"
	caseName  = "plain"
)

// Names of every kind: the names of keys and channels follow from them.
var caseNames = []string{caseName, "{tag}x", "a{b", "a{b}c", "b}", "{}l", "замок 1"}

// caseLatch is the id of the unlock that cases are about.
var caseLatch = strings.Repeat("0123456789abcdef", 2)

// Times that are distinguished, in milliseconds. None is so short that it could be over
// before it was looked at.
const (
	caseShort, caseLease, caseLong = 20000, 30000, 90000
)

func plainCases() []Case {
	return slices.Concat(acquireCases(), reentryCases(), releaseCases(), latchCases(), forceCases(), renewCases())
}

// meant completes a case with the divergences that are to be seen.
func (c Case) meant(names ...string) Case {
	c.Meant = names
	return c
}

// hashOf is a lock, with pairs of owner and count.
func hashOf(left int64, pairs ...string) Entry {
	fields := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		fields[pair[0]] = pair[1]
	}
	return Entry{Type: "hash", Value: fields, Expires: left}
}

// textOf is a string: a latch, or what is no lock.
func textOf(left int64, value string) Entry {
	return Entry{Type: "string", Value: value, Expires: left}
}

func listOf(items ...string) Entry { return Entry{Type: "list", Value: items, Expires: never} }

func zsetOf(scores map[string]float64) Entry {
	return Entry{Type: "zset", Value: scores, Expires: never}
}

// lockIs is a state in which there is the one lock of the cases.
func lockIs(e Entry) State { return State{caseName: e} }

func acquiring(does string, before State, lease, target int64) Case {
	return Case{Does: does, Before: before, Step: Step{Op: Acquire, Names: []string{caseName}, Owner: caseOwner, Lease: lease, Target: target}}
}

func acquireCases() []Case {
	var all []Case
	for _, name := range caseNames {
		c := acquiring(fmt.Sprintf("takes %q, which is free", name), State{}, caseLease, 0)
		c.Step.Names = []string{name}
		all = append(all, c)
	}
	return append(all,
		acquiring("enters again, as a new attempt", lockIs(hashOf(caseShort, caseOwner, "1")), caseLease, 0),
		acquiring("finds it held", lockIs(hashOf(caseLong, caseOther, "3")), caseLease, 0).meant(anyHolder),
		acquiring("finds it held for ever", lockIs(hashOf(never, caseOther, "1")), caseLease, 0).meant(anyHolder),
		acquiring("finds it held by two", lockIs(hashOf(caseShort, caseOther, "1", caseOwner, "1")), caseLease, 0),
		acquiring("takes a free lock with no lease at all", State{}, 0, 0),
		acquiring("finds a text", lockIs(textOf(never, "no lock")), caseLease, 0),
		acquiring("finds a list", lockIs(listOf("a", "b")), caseLease, 0),
		acquiring("finds a sorted set", lockIs(zsetOf(map[string]float64{"a": 1})), caseLease, 0),
		acquiring("leaves other keys alone", State{"other": hashOf(caseLong, caseOwner, "1")}, caseLease, 0),
	)
}

// reentryCases are about an owner that enters again, by our own script in the one
// way, by Redisson's acquire in the other.
func reentryCases() []Case {
	held := func(count string) State { return lockIs(hashOf(caseLease, caseOwner, count)) }
	return []Case{
		acquiring("enters again, for the same lease", held("1"), caseLease, 2).meant(ownReply),
		acquiring("enters again, for a longer lease", held("1"), caseLong, 2).meant(ownReply),
		acquiring("enters again, for a shorter lease", held("1"), caseShort, 2).meant(ownReply, ownLease),
		acquiring("enters again, for the tenth time", held("9"), caseLong, 10).meant(ownReply),
		acquiring("enters again beside another", lockIs(hashOf(caseLease, caseOther, "2", caseOwner, "1")), caseLong, 2).meant(ownReply),
		acquiring("enters a lock again that never expires", lockIs(hashOf(never, caseOwner, "1")), caseLease, 2).meant(ownReply, ownLease),
		acquiring("enters again with no lease at all", held("1"), 0, 2).meant(ownReply, ownLease),
		acquiring("enters a lock again that has expired", State{}, caseLease, 2).meant(ownGone),
		acquiring("enters a lock again that another has now", lockIs(hashOf(caseLong, caseOther, "1")), caseLease, 2).meant(ownGone),
		acquiring("enters a lock again that is a text now", lockIs(textOf(caseLong, "no lock")), caseLease, 2),
		acquiring("enters again, sent twice", held("2"), caseLong, 2).meant(ownReply, ownReentry),
		acquiring("enters again, too late", held("3"), caseLong, 2).meant(ownReply, ownReentry),
		acquiring("enters again, two others being on their way", held("1"), caseLong, 4).meant(ownReply, ownReentry),
	}
}

func releasing(does string, before State, target int64) Case {
	return Case{Does: does, Before: before, Step: Step{
		Op: Free, Names: []string{caseName}, Owner: caseOwner, Lease: caseLease, Target: target, RequestID: caseLatch,
	}}
}

func releaseCases() []Case {
	var all []Case
	for _, name := range caseNames {
		c := releasing(fmt.Sprintf("frees %q", name), State{name: hashOf(caseShort, caseOwner, "1")}, 0).meant(ownLatch, newLatch)
		c.Step.Names = []string{name}
		all = append(all, c)
	}
	held := func(left int64, count string) State { return lockIs(hashOf(left, caseOwner, count)) }
	return append(all,
		releasing("frees a lock that never expires", held(never, "1"), 0).meant(ownLatch, newLatch),
		releasing("frees a lock with a field of another", lockIs(hashOf(caseLong, caseOther, "4", caseOwner, "1")), 0).meant(ownLatch, newLatch),
		releasing("gives one hold of two back, to a longer lease", held(caseShort, "2"), 1).meant(ownLatch, newLatch),
		releasing("gives one hold of two back, to a shorter lease", held(caseLong, "2"), 1).meant(ownLatch, newLatch),
		releasing("gives one hold of two back, of a lock that never expires", held(never, "2"), 1).meant(ownLatch, newLatch),
		releasing("gives one hold of ten back", held(caseShort, "10"), 9).meant(ownLatch, newLatch),
		releasing("finds it free", State{}, 0),
		releasing("finds it held by another", lockIs(hashOf(caseLong, caseOther, "2")), 0),
		releasing("finds a text", lockIs(textOf(caseLong, "no lock")), 0),
		releasing("frees a lock that was entered again meanwhile", held(caseLong, "3"), 0).meant(ownLatch, newLatch, ownCount),
		releasing("gives two holds of three back at once", held(caseLong, "3"), 1).meant(ownLatch, newLatch, ownCount),
		releasing("gives a hold back, too late", held(caseLong, "1"), 1).meant(ownLatch, newLatch, ownCount),
		releasing("gives a hold back that was never entered", held(caseLong, "1"), 2).meant(ownLatch, newLatch, ownCount),
		releasing("gives a hold back of a lock that is gone", State{}, 1),
	)
}

// latchCases are releases that are sent again, when the first one has left its
// latch.
func latchCases() []Case {
	latch := codec.LatchKey(caseName, caseLatch)
	again := func(does, first string, lock State, target int64) Case {
		c := releasing(does, State{latch: textOf(caseShort, first)}, target)
		for name, e := range lock {
			c.Before[name] = e
		}
		c.Step.Repeat, c.Of = true, Release.HasLatch
		return c
	}
	other := releasing("knows the latch of another release for another's", lockIs(hashOf(caseShort, caseOwner, "1")), 0).meant(ownLatch)
	other.Before[codec.LatchKey(caseName, strings.Repeat("f", 32))] = textOf(caseShort, "0")
	other.Of = Release.HasLatch
	return []Case{
		again("frees it, sent twice", "1", State{}, 0).meant(ownCount),
		again("frees it, sent twice, when another has it", "1", lockIs(hashOf(caseLong, caseOther, "1")), 0).meant(ownCount),
		again("frees it, sent twice, when the owner has it again", "1", lockIs(hashOf(caseLong, caseOwner, "1")), 0).meant(ownCount),
		again("frees it, sent twice, when it is a text", "1", lockIs(textOf(caseLong, "no lock")), 0).meant(ownCount),
		again("gives one hold of two back, sent twice", "0", lockIs(hashOf(caseLong, caseOwner, "1")), 1),
		again("gives one hold of two back, sent twice, after the other", "0", State{}, 1).meant(ownCount),
		other,
	}
}

func forcing(does string, before State) Case {
	return Case{Does: does, Before: before, Step: Step{Op: Force, Names: []string{caseName}}}
}

func forceCases() []Case {
	var all []Case
	for _, name := range caseNames {
		c := forcing(fmt.Sprintf("takes %q away", name), State{name: hashOf(caseShort, caseOther, "2")})
		c.Step.Names = []string{name}
		all = append(all, c)
	}
	return append(all,
		forcing("finds it free", State{}),
		forcing("takes a lock away that never expires", lockIs(hashOf(never, caseOwner, "1", caseOther, "1"))),
		forcing("deletes a text", lockIs(textOf(caseLong, "no lock"))),
		forcing("leaves other keys alone", State{"other": hashOf(caseLong, caseOwner, "1")}),
	)
}

func renewing(does string, before State, names ...string) Case {
	return Case{Does: does, Before: before, Step: Step{Op: Renew, Names: names, Owner: caseOwner, Lease: caseLease}}
}

func renewCases() []Case {
	held := func(left int64) Entry { return hashOf(left, caseOwner, "1") }
	others := hashOf(caseShort, caseOther, "1")
	return []Case{
		renewing("makes a lock longer", lockIs(held(caseShort)), caseName),
		renewing("makes a lock shorter", lockIs(held(caseLong)), caseName).meant(anyLonger),
		renewing("gives a lock a time to live", lockIs(hashOf(never, caseOwner, "2")), caseName),
		renewing("finds it free", State{}, caseName),
		renewing("finds it held by another", lockIs(others), caseName),
		renewing("finds it held by two", lockIs(hashOf(caseShort, caseOther, "1", caseOwner, "1")), caseName),
		renewing("finds a text", lockIs(textOf(caseShort, "no lock")), caseName).meant(anyRenewal),
		renewing("renews some of many", State{"{m}1": held(caseShort), "{m}2": others, "{m}4": held(caseLong), "{m}5": held(caseShort)},
			"{m}1", "{m}2", "{m}3", "{m}4").meant(anyLonger),
		renewing("renews what comes before a text, and after it", State{"{m}1": held(caseShort), "{m}2": textOf(never, "no lock"), "{m}3": held(caseShort)},
			"{m}1", "{m}2", "{m}3").meant(anyRenewal),
	}
}
