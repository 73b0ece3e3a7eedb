package oracle

import (
	"fmt"
	"maps"
	"slices"

	"github.com/redlatch/redlatch/codec"
)

// The modes of a read/write lock, and the fields of the owners of the cases as writers.
const (
	modeRead, modeWrite = codec.ModeRead, codec.ModeWrite
	caseWriter          = caseOwner + ":write"
	caseOtherWriter     = caseOther + ":write"
)

func rwCases() []Case {
	return slices.Concat(
		readAcquireCases(), readAgainCases(), readFreeCases(), readLateCases(),
		forcedCases(ReadForce, modeRead, caseOther), readRenewCases(),
		writeAcquireCases(), writeAgainCases(), writeFreeCases(), writeLateCases(),
		forcedCases(WriteForce, modeWrite, caseOtherWriter), writeRenewCases(),
	)
}

// rwIs is a state in which there is the one lock of the cases, with pairs of field and count.
func rwIs(left int64, mode string, pairs ...string) State {
	return lockIs(hashOf(left, append([]string{"mode", mode}, pairs...)...))
}

// with adds the keys of a reader's holds, each with what it has left; 0 is one that is gone.
func (s State) with(owner string, lefts ...int64) State {
	all := maps.Clone(s)
	for i, left := range lefts {
		if left != 0 {
			all[codec.HoldKey(caseName, owner, int64(i+1))] = textOf(left, "1")
		}
	}
	return all
}

// rwCase is a case about the one lock, with an unlock of its own.
func rwCase(op *Operation, does string, before State, target int64) Case {
	s := Step{Op: op, Names: []string{caseName}, Owner: caseOwner, Lease: caseLease, Target: target}
	if op.act == rwFree {
		s.RequestID = caseLatch
	}
	return Case{Does: does, Before: before, Step: s}
}

// named are cases of a state for each of the names.
func named(op *Operation, does string, meant []string, fields ...string) (all []Case) {
	for _, name := range caseNames {
		c := rwCase(op, fmt.Sprintf(does, name), State{}, 0).meant(meant...)
		c.Step.Names = []string{name}
		if fields != nil {
			c.Before[name] = hashOf(caseLease, fields...)
			c.Before[codec.HoldKey(name, caseOwner, 1)] = textOf(caseLease, "1")
		}
		all = append(all, c)
	}
	return all
}

// notLocks are cases in which the key is something else.
func notLocks(op *Operation, target int64) []Case {
	return []Case{
		rwCase(op, "finds a text", lockIs(textOf(caseLong, "no lock")), target),
		rwCase(op, "finds a list", lockIs(listOf("a", "b")), target),
		rwCase(op, "finds a sorted set", lockIs(zsetOf(map[string]float64{"a": 1})), target),
	}
}

func readAcquireCases() []Case {
	op := ReadAcquire
	other := rwIs(caseLong, modeRead, caseOther, "1").with(caseOther, caseLong)
	return slices.Concat(named(op, "takes %q, which is free", nil), notLocks(op, 0), []Case{
		rwCase(op, "comes in beside a reader with more time left", other, 0),
		rwCase(op, "comes in beside a reader with less time left", rwIs(caseShort, modeRead, caseOther, "1").with(caseOther, caseShort), 0),
		rwCase(op, "comes in beside a reader that never ends", rwIs(never, modeRead, caseOther, "1").with(caseOther, caseShort), 0),
		rwCase(op, "comes in beside a reader with more time left, where it never ends", rwIs(never, modeRead, caseOther, "1").with(caseOther, caseLong), 0).meant(rwEndless),
		rwCase(op, "comes in where all readers are dead", rwIs(caseLong, modeRead, caseOther, "2"), 0),
		rwCase(op, "comes in again, as a new attempt", rwIs(caseLong, modeRead, caseOwner, "1").with(caseOwner, caseLong), 0),
		rwCase(op, "finds it written", rwIs(caseLong, modeWrite, caseOtherWriter, "2"), 0).meant(anyHolder),
		rwCase(op, "finds it written for ever", rwIs(never, modeWrite, caseOtherWriter, "1"), 0).meant(anyHolder),
		rwCase(op, "finds it written by an owner that reads", rwIs(caseLong, modeWrite, caseOtherWriter, "1", caseOther, "1").with(caseOther, caseLong), 0).meant(anyHolder),
		rwCase(op, "reads what it writes, as a new attempt", rwIs(caseShort, modeWrite, caseWriter, "1"), 0),
		rwCase(op, "reads what it writes, as a new attempt, where it never ends", rwIs(never, modeWrite, caseWriter, "1"), 0).meant(rwEndless),
		rwCase(op, "takes a free lock with no lease at all", State{}, 0).lasting(0),
		rwCase(op, "comes in with no lease at all", other, 0).lasting(0),
		rwCase(op, "finds a plain lock", lockIs(hashOf(caseLong, caseOther, "1")), 0).meant(rwForeign),
		rwCase(op, "finds its own plain lock", lockIs(hashOf(caseLong, caseOwner, "1")), 0).meant(rwForeign),
		rwCase(op, "leaves other keys alone", State{"other": hashOf(caseLong, caseOwner, "1")}, 0),
	})
}

func readAgainCases() []Case {
	op := ReadAcquire
	held := func(left int64, count string, lefts ...int64) State {
		return rwIs(left, modeRead, caseOwner, count).with(caseOwner, lefts...)
	}
	writing := rwIs(caseLease, modeWrite, caseWriter, "1")
	return slices.Concat(notLocks2(op, 2), []Case{
		rwCase(op, "comes in again, for the same lease", held(caseLease, "1", caseLease), 2).meant(ownReply),
		rwCase(op, "comes in again, for a longer lease", held(caseLease, "1", caseLease), 2).lasting(caseLong).meant(ownReply, rwKeys),
		rwCase(op, "comes in again, for a shorter lease", held(caseLease, "1", caseLease), 2).lasting(caseShort).meant(ownReply, rwKeys),
		rwCase(op, "comes in again beside another", rwIs(caseLong, modeRead, caseOwner, "1", caseOther, "1").with(caseOwner, caseShort).with(caseOther, caseLong), 2).meant(ownReply, rwKeys),
		rwCase(op, "comes in again where it never ends", held(never, "1", caseShort), 2).meant(ownReply, rwKeys, ownLease),
		rwCase(op, "comes in again where the lease was cut", held(caseShort, "1", caseLong), 2).meant(ownReply, rwKeys, ownLease),
		rwCase(op, "comes in again when its newest hold is over", held(caseLong, "2", caseLease, 0), 3).meant(ownReply, rwKeys),
		rwCase(op, "reads what it writes", writing, 1).meant(ownReply),
		rwCase(op, "reads what it writes, for longer", writing, 1).lasting(caseLong).meant(ownReply),
		rwCase(op, "reads what it writes, again", rwIs(caseLease, modeWrite, caseWriter, "1", caseOwner, "1").with(caseOwner, caseShort), 2).meant(ownReply, rwKeys),
		rwCase(op, "comes in again where all is over", State{}, 2).meant(ownGone),
		rwCase(op, "comes in again where its holds are over", held(caseLong, "1"), 2).meant(ownGone),
		rwCase(op, "comes in again where another reads", rwIs(caseLong, modeRead, caseOther, "1").with(caseOther, caseLong), 2).meant(ownGone),
		rwCase(op, "comes in again where another writes", rwIs(caseLong, modeWrite, caseOtherWriter, "1"), 2).meant(ownGone),
		rwCase(op, "comes in again beside another's write", rwIs(caseLong, modeWrite, caseOtherWriter, "1", caseOwner, "1").with(caseOwner, caseLong), 2).meant(ownGone),
		rwCase(op, "comes in again where there is a plain lock", lockIs(hashOf(caseLong, caseOwner, "1")).with(caseOwner, caseLong), 2).meant(ownGone),
		rwCase(op, "comes in again, sent twice", held(caseLease, "2", caseLease, caseLease), 2).meant(ownReply, ownReentry),
		rwCase(op, "comes in again, two others being on their way", held(caseLease, "1", caseLease), 4).meant(ownReply, ownReentry),
	})
}

// notLocks2 are the cases of notLocks for an owner that enters again.
func notLocks2(op *Operation, target int64) []Case {
	all := notLocks(op, target)
	for i := range all {
		all[i].Does = "enters again and " + all[i].Does
	}
	return all
}

func readFreeCases() []Case {
	op, latch := ReadFree, []string{ownLatch, newLatch}
	left := func(does string, before State, target int64, names ...string) Case {
		return rwCase(op, does, before, target).meant(append(names, latch...)...)
	}
	two := rwIs(caseLong, modeRead, caseOwner, "1", caseOther, "1").with(caseOwner, caseLong).with(caseOther, caseShort)
	return slices.Concat(named(op, "leaves %q", latch, "mode", modeRead, caseOwner, "1"), notLocks(op, 0), []Case{
		left("leaves a lock that never expires", rwIs(never, modeRead, caseOwner, "1").with(caseOwner, caseShort), 0),
		left("leaves a lock to a reader with less time left", two, 0, rwReadReply),
		left("leaves a lock to a reader with more time left", rwIs(caseShort, modeRead, caseOwner, "1", caseOther, "2").with(caseOwner, caseShort).with(caseOther, caseShort, caseLong), 0, rwReadReply),
		left("leaves a lock to dead readers", rwIs(caseLong, modeRead, caseOwner, "1", caseOther, "2").with(caseOwner, caseLong), 0),
		left("leaves a lock as the last, its hold being over", rwIs(caseLong, modeRead, caseOwner, "1"), 0),
		left("gives one hold of two back", rwIs(caseShort, modeRead, caseOwner, "2").with(caseOwner, caseShort, caseShort), 1, rwKeysLeft),
		left("gives one hold of two back, beside a reader with more time left", rwIs(caseLong, modeRead, caseOwner, "2", caseOther, "1").with(caseOwner, caseShort, caseShort).with(caseOther, caseLong), 1, rwKeysLeft),
		left("gives one hold of two back, the other being over", rwIs(caseLong, modeRead, caseOwner, "2").with(caseOwner, 0, caseLong), 1, rwRevived),
		left("gives one hold of two back, the newer having more time left", rwIs(caseLong, modeRead, caseOwner, "2").with(caseOwner, caseShort, caseLong), 1, rwKeysLeft),
		left("leaves what it writes", rwIs(caseLong, modeWrite, caseWriter, "1", caseOwner, "1").with(caseOwner, caseShort), 0, rwReadReply),
		left("gives one of two reads of what it writes back", rwIs(caseLong, modeWrite, caseWriter, "1", caseOwner, "2").with(caseOwner, caseShort, caseShort), 1, rwKeysLeft, rwUncut),
		left("gives one of two reads back, of a write lock that never expires", rwIs(never, modeWrite, caseWriter, "1", caseOwner, "2").with(caseOwner, caseShort, caseShort), 1, rwKeysLeft, rwUncut),
		rwCase(op, "finds it free", State{}, 0).meant(rwGone, newLatch),
		rwCase(op, "finds it read by another", rwIs(caseLong, modeRead, caseOther, "2").with(caseOther, caseLong, caseLong), 0),
		rwCase(op, "finds it written by another", rwIs(caseLong, modeWrite, caseOtherWriter, "1"), 0),
		rwCase(op, "finds that it writes and does not read", rwIs(caseLong, modeWrite, caseWriter, "1"), 0),
		rwCase(op, "finds its own plain lock", lockIs(hashOf(caseLong, caseOwner, "1")), 0).meant(rwGone),
	})
}

// latched are cases in which a release is sent again, when the first one has left its latch.
func latched(op *Operation, meant []string, left State) []Case {
	again := func(does, first string, before State, target int64) Case {
		c := rwCase(op, does, before, target).meant(meant...)
		c.Before = maps.Clone(before)
		c.Before[codec.LatchKey(caseName, caseLatch)] = textOf(caseShort, first)
		c.Step.Repeat, c.Of = true, Release.HasLatch
		return c
	}
	return []Case{
		again("leaves, sent twice", "1", State{}, 0),
		again("leaves, sent twice, when the owner has it again", "1", left, 0),
	}
}

func readLateCases() []Case {
	op := ReadFree
	three := rwIs(caseLease, modeRead, caseOwner, "3").with(caseOwner, caseLease, caseLease, caseLease)
	one := rwIs(caseLease, modeRead, caseOwner, "1").with(caseOwner, caseLease)
	return slices.Concat(latched(op, []string{ownCount}, one), []Case{
		rwCase(op, "leaves a lock that was entered again meanwhile", three, 0).meant(ownLatch, newLatch, ownCount),
		rwCase(op, "gives two holds of three back at once", three, 1).meant(ownLatch, newLatch, ownCount),
		rwCase(op, "gives a hold back, too late", one, 1).meant(ownLatch, newLatch, ownCount),
		rwCase(op, "gives a hold back of a lock that is gone", State{}, 1).meant(rwGone, newLatch),
	})
}

func forcedCases(op *Operation, mode, field string) []Case {
	all := slices.Concat(named(op, "takes %q away", nil, "mode", mode, field, "2"), notLocks(op, 0), []Case{
		rwCase(op, "finds it free", State{}, 0),
		rwCase(op, "finds it read", rwIs(caseLong, modeRead, caseOther, "1", caseOwner, "1").with(caseOwner, caseLong), 0),
		rwCase(op, "finds it written, and read inside", rwIs(caseLong, modeWrite, caseOtherWriter, "1", caseOther, "1").with(caseOther, caseLong), 0),
		rwCase(op, "finds a plain lock", lockIs(hashOf(caseLong, caseOther, "1")), 0),
		rwCase(op, "takes a lock away that never expires", rwIs(never, mode, field, "1"), 0),
	})
	for i := range all {
		all[i].Step.Owner, all[i].Step.Lease = "", 0
	}
	return all
}

// rwRenewal is a case of a renewal of several locks.
func rwRenewal(op *Operation, does string, before State, names ...string) Case {
	c := rwCase(op, does, before, 0)
	if names != nil {
		c.Step.Names = names
	}
	return c
}

func readRenewCases() []Case {
	op := ReadRenew
	held := func(left int64, lefts ...int64) State {
		return rwIs(left, modeRead, caseOwner, fmt.Sprint(len(lefts))).with(caseOwner, lefts...)
	}
	beside := rwIs(caseLong, modeRead, caseOwner, "1", caseOther, "1").with(caseOwner, caseShort).with(caseOther, caseLong)
	several := func(lefts ...int64) State {
		all := State{}
		for i, left := range lefts {
			name := fmt.Sprintf("{m}%d", i)
			all[name] = hashOf(left, "mode", modeRead, caseOwner, "1")
			all[codec.HoldKey(name, caseOwner, 1)] = textOf(left, "1")
		}
		return all
	}
	spoilt := several(caseShort, caseShort, caseShort)
	spoilt["{m}1"] = textOf(never, "no lock")
	return []Case{
		rwRenewal(op, "makes a hold longer", held(caseShort, caseShort)),
		rwRenewal(op, "makes a hold shorter", held(caseLong, caseLong)).meant(anyLonger),
		rwRenewal(op, "makes two holds longer", held(caseShort, caseShort, caseShort)).meant(rwSpoilt),
		rwRenewal(op, "gives a lock a time to live", held(never, caseShort)),
		rwRenewal(op, "gives a lock a time to live, beside a longer reader",
			rwIs(never, modeRead, caseOwner, "1", caseOther, "1").with(caseOwner, caseShort).with(caseOther, caseLong)).meant(rwEndless, rwOthers),
		rwRenewal(op, "reads what it writes, where it never ends", rwIs(never, modeWrite, caseWriter, "1", caseOwner, "1").with(caseOwner, caseShort)).meant(rwEndless),
		rwRenewal(op, "has another beside it", beside).meant(anyLonger, rwOthers),
		rwRenewal(op, "reads what it writes", rwIs(caseShort, modeWrite, caseWriter, "1", caseOwner, "1").with(caseOwner, caseShort)),
		rwRenewal(op, "finds that its hold is over", rwIs(caseShort, modeRead, caseOwner, "1", caseOther, "1")).meant(rwOver),
		rwRenewal(op, "finds it free", State{}),
		rwRenewal(op, "finds it read by another", rwIs(caseShort, modeRead, caseOther, "1").with(caseOther, caseShort)),
		rwRenewal(op, "finds it written by another", rwIs(caseShort, modeWrite, caseOtherWriter, "1")),
		rwRenewal(op, "finds a text", lockIs(textOf(caseShort, "no lock"))).meant(anyRenewal),
		rwRenewal(op, "renews some of many", several(caseLong, caseShort, caseShort), "{m}0", "{m}1", "{m}3").meant(anyLonger, rwSpoilt),
		rwRenewal(op, "renews what comes before a text, and after it", spoilt, "{m}0", "{m}1", "{m}2").meant(anyRenewal),
	}
}

func writeAcquireCases() []Case {
	op := WriteAcquire
	return slices.Concat(named(op, "takes %q, which is free", nil), notLocks(op, 0), []Case{
		rwCase(op, "writes again, as a new attempt", rwIs(caseLong, modeWrite, caseWriter, "1"), 0).meant(rwWriteMore),
		rwCase(op, "writes again, as a new attempt, with less time left", rwIs(caseShort, modeWrite, caseWriter, "1"), 0).meant(rwWriteMore),
		rwCase(op, "writes again, as a new attempt, where it never ends", rwIs(never, modeWrite, caseWriter, "1"), 0).meant(rwEndless),
		rwCase(op, "finds it written", rwIs(caseLong, modeWrite, caseOtherWriter, "3"), 0).meant(anyHolder),
		rwCase(op, "finds it written for ever", rwIs(never, modeWrite, caseOtherWriter, "1"), 0).meant(anyHolder),
		rwCase(op, "finds it read", rwIs(caseLong, modeRead, caseOther, "1").with(caseOther, caseLong), 0),
		rwCase(op, "finds it read by itself", rwIs(caseLong, modeRead, caseOwner, "1").with(caseOwner, caseLong), 0),
		rwCase(op, "finds it read by the dead", rwIs(caseLong, modeRead, caseOther, "1"), 0),
		rwCase(op, "takes a free lock with no lease at all", State{}, 0).lasting(0),
		rwCase(op, "finds a plain lock", lockIs(hashOf(caseLong, caseOther, "1")), 0).meant(rwForeign),
		rwCase(op, "leaves other keys alone", State{"other": hashOf(caseLong, caseOwner, "1")}, 0),
	})
}

func writeAgainCases() []Case {
	op := WriteAcquire
	held := func(left int64, count string) State { return rwIs(left, modeWrite, caseWriter, count) }
	return slices.Concat(notLocks2(op, 2), []Case{
		rwCase(op, "writes again, for a longer lease", held(caseLease, "1"), 2).lasting(caseLong).meant(ownReply, rwWriteMore),
		rwCase(op, "writes again, for a shorter lease", held(caseLease, "1"), 2).lasting(caseShort).meant(ownReply, rwWriteMore),
		rwCase(op, "writes again, with no lease at all", held(caseLease, "1"), 2).lasting(0).meant(ownReply),
		rwCase(op, "writes again where it never ends", held(never, "1"), 2).meant(ownReply, ownLease),
		rwCase(op, "writes again what it reads", rwIs(caseLease, modeWrite, caseWriter, "1", caseOwner, "1").with(caseOwner, caseLease), 2).meant(ownReply, rwWriteMore),
		rwCase(op, "writes again where all is over", State{}, 2).meant(ownGone),
		rwCase(op, "writes again where another writes", rwIs(caseLong, modeWrite, caseOtherWriter, "1"), 2).meant(ownGone),
		rwCase(op, "writes again what it only reads by now", rwIs(caseLong, modeRead, caseOwner, "1").with(caseOwner, caseLong), 2).meant(ownGone),
		rwCase(op, "writes again, sent twice", held(caseLease, "2"), 2).meant(ownReply, ownReentry, rwWriteMore),
		rwCase(op, "writes again, two others being on their way", held(caseLease, "1"), 4).meant(ownReply, ownReentry, rwWriteMore),
	})
}

func writeFreeCases() []Case {
	op, latch := WriteFree, []string{ownLatch, newLatch}
	left := func(does string, before State, target int64, names ...string) Case {
		return rwCase(op, does, before, target).meant(append(names, latch...)...)
	}
	held := func(left int64, count string) State { return rwIs(left, modeWrite, caseWriter, count) }
	read := func(left int64, count string, lefts ...int64) State {
		return rwIs(left, modeWrite, caseWriter, count, caseOwner, fmt.Sprint(len(lefts))).with(caseOwner, lefts...)
	}
	return slices.Concat(named(op, "leaves %q", latch, "mode", modeWrite, caseWriter, "1"), notLocks(op, 0), []Case{
		left("leaves a lock that never expires", held(never, "1"), 0),
		left("gives one hold of two back, to a longer lease", held(caseShort, "2"), 1),
		left("gives one hold of two back, to a shorter lease", held(caseLong, "2"), 1, rwWriteUncut),
		left("gives one hold of two back, of a lock that never expires", held(never, "2"), 1, rwWriteUncut),
		left("gives one hold of two back, reading for less", read(caseLong, "2", caseShort), 1, rwWriteUncut),
		left("gives one hold of two back, reading for more", read(caseShort, "2", caseShort, caseLong), 1, rwWriteLeft),
		left("goes on as a reader", read(caseLong, "1", caseShort), 0, rwDowngrade, rwReadsLast),
		left("goes on as a reader for as long as the lock has left", read(caseLong, "1", caseLong), 0, rwDowngrade),
		left("goes on as a reader for longer than the lock has left", read(caseShort, "1", caseLong), 0, rwDowngrade, rwReadsLast),
		left("goes on as a reader of a lock that never expires", read(never, "1", caseShort), 0, rwDowngrade, rwReadsLast),
		left("leaves reads that are over", read(caseLong, "1", 0, 0), 0, rwDowngrade, rwDeadReads),
		rwCase(op, "finds it free", State{}, 0).meant(rwGone, newLatch),
		rwCase(op, "finds it written by another", rwIs(caseLong, modeWrite, caseOtherWriter, "1"), 0),
		rwCase(op, "finds that it reads and does not write", rwIs(caseLong, modeRead, caseOwner, "1").with(caseOwner, caseLong), 0),
		rwCase(op, "finds a plain lock", lockIs(hashOf(caseLong, caseOwner, "1")), 0).meant(rwGone),
	})
}

func writeLateCases() []Case {
	op := WriteFree
	held := func(count string) State { return rwIs(caseLong, modeWrite, caseWriter, count) }
	return slices.Concat(latched(op, []string{ownCount}, held("1")), []Case{
		rwCase(op, "leaves a lock that was entered again meanwhile", held("3"), 0).meant(ownLatch, newLatch, ownCount, rwWriteUncut),
		rwCase(op, "gives two holds of three back at once", held("3"), 1).meant(ownLatch, newLatch, ownCount, rwWriteUncut),
		rwCase(op, "gives a hold back, too late", held("1"), 1).meant(ownLatch, newLatch, ownCount),
		rwCase(op, "gives a hold back of a lock that is gone", State{}, 1).meant(rwGone, newLatch),
	})
}

func writeRenewCases() []Case {
	op := WriteRenew
	held := func(left int64) Entry { return hashOf(left, "mode", modeWrite, caseWriter, "1") }
	return []Case{
		rwRenewal(op, "makes a lock longer", lockIs(held(caseShort))),
		rwRenewal(op, "makes a lock shorter", lockIs(held(caseLong))).meant(anyLonger),
		rwRenewal(op, "leaves its reads alone", rwIs(caseShort, modeWrite, caseWriter, "1", caseOwner, "1").with(caseOwner, caseShort)),
		rwRenewal(op, "finds that it only reads by now", rwIs(caseShort, modeRead, caseOwner, "1").with(caseOwner, caseShort)),
		rwRenewal(op, "finds it free", State{}),
		rwRenewal(op, "finds it written by another", rwIs(caseShort, modeWrite, caseOtherWriter, "1")),
		rwRenewal(op, "finds a text", lockIs(textOf(caseShort, "no lock"))).meant(anyRenewal),
		rwRenewal(op, "renews some of many", State{"{m}1": held(caseShort), "{m}2": held(caseLong), "{m}4": held(caseShort)}, "{m}1", "{m}2", "{m}3").meant(anyLonger),
	}
}
