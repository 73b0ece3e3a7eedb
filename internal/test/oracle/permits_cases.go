package oracle

import (
	"encoding/hex"
	"maps"
	"slices"
)

// The permits of the cases: ids, whose bytes are letters, so that a record can be read.
var (
	permitA = permitOf("permit A of ours")
	permitB = permitOf("permit B of ours")
	permitC = permitOf("permit C of ours")
	permitD = permitOf("permit D, theirs")
)

func permitOf(sixteen string) string { return hex.EncodeToString([]byte(sixteen)) }

// ends are permits that are out, and how long each has left by the clock of the cases; noEnd
// for ever.
type ends map[string]int64

// out adds permits that are out to a state.
func (s State) out(permits ends) State {
	scores := map[string]float64{}
	for id, left := range permits {
		scores[RawID(id)] = float64(caseNow + left)
		if left == noEnd {
			scores[RawID(id)] = noEnd
		}
	}
	all := maps.Clone(s)
	all[Step{Names: []string{caseName}}.permitKeys()[1]] = zsetOf(scores)
	return all
}

// lastsFor gives the ends of permits a time to live.
func (s State) lastsFor(left int64) State {
	key := Step{Names: []string{caseName}}.permitKeys()[1]
	e := s[key]
	e.Expires = left
	s[key] = e
	return s
}

// timed is a case at the clock of the cases.
func timed(op *Operation, does string, before State, ids ...string) Case {
	c := permitCase(op, does, before, 0, ids...)
	c.Step.Now, c.Step.Lease = caseNow, caseLease
	return c
}

// counted is a case about a number of permits.
func counted(op *Operation, does string, before State, permits int64) Case {
	c := timed(op, does, before)
	c.Step.Permits = permits
	return c
}

// many is a case of releases that take several permits at once.
func (c Case) many() Case {
	c.Of = Release.TakesManyPermits
	return c
}

func permitsCases() []Case {
	return slices.Concat(
		permitNameCases(), permitTakes(), permitPrunes(), permitGives(), permitGivesAll(), permitRenews(), permitLefts(),
		permitQuestions(PermitsFree), permitQuestions(PermitsAll), permitQuestions(PermitsOut), permitSets(), permitAdds(),
	)
}

// permitNameCases do everything to semaphores of each name.
func permitNameCases() (all []Case) {
	for _, op := range permitOperations {
		for _, c := range eachName(op, "3", 2, permitA) {
			c.Step.Now, c.Step.Lease = caseNow, caseLease
			all = append(all, c)
		}
		for _, c := range spoiltCounters(op, 2, permitA) {
			c.Step.Now, c.Step.Lease = caseNow, caseLease
			all = append(all, c)
		}
		c := counted(op, "finds ends that are a text", counts("3"), 2)
		c.Step.IDs = []string{permitA}
		c.Before[c.Step.permitKeys()[1]] = textOf(never, "no set")
		all = append(all, c)
	}
	return all
}

func permitTakes() []Case {
	op := PermitAcquire
	return []Case{
		timed(op, "takes one for ever", counts("3"), permitA).lasting(forEver),
		timed(op, "takes two", counts("3"), permitA, permitB).many(),
		timed(op, "takes all", counts("3"), permitA, permitB, permitC).many(),
		timed(op, "finds too few", counts("1"), permitA, permitB).many(),
		timed(op, "finds no semaphore", State{}, permitA),
		timed(op, "finds fewer than none", counts("-2"), permitA),
		timed(op, "takes one with no lease at all", counts("3"), permitA).lasting(0),
		timed(op, "takes one whose lease is over", counts("3"), permitA).lasting(-5000),
		timed(op, "copies the time to live", countsFor(caseShort, "3"), permitA),
		timed(op, "copies the time to live over another", countsFor(caseShort, "3").out(ends{permitB: 60000}).lastsFor(caseLong), permitA),
		timed(op, "leaves the time to live of the ends alone", counts("3").out(ends{permitB: 60000}).lastsFor(caseLong), permitA),
		timed(op, "finds one out for a time", counts("0").out(ends{permitB: 60000}), permitA),
		timed(op, "finds two out, and one for ever", counts("0").out(ends{permitB: 60000, permitC: 50000, permitD: noEnd}), permitA),
		timed(op, "finds one out for ever", counts("0").out(ends{permitB: noEnd}), permitA),
		timed(op, "takes one beside others", counts("1").out(ends{permitB: noEnd, permitC: 60000}), permitA),
		timed(op, "takes an id that is out", counts("1").out(ends{permitA: 60000}), permitA),
		timed(op, "takes an id twice", counts("3"), permitA, permitA).many(),
	}
}

// permitPrunes are about permits whose lease is over.
func permitPrunes() []Case {
	op := PermitAcquire
	over := ends{permitB: -1000, permitC: -500, permitD: noEnd}
	return []Case{
		timed(op, "takes one that is over", counts("0").out(ends{permitB: -1}), permitA),
		timed(op, "takes one that is just over", counts("0").out(ends{permitB: 0}), permitA),
		timed(op, "does not take one that is all but over", counts("0").out(ends{permitB: 1}), permitA),
		timed(op, "takes one of two that are over", counts("0").out(over), permitA),
		timed(op, "takes two that are over", counts("0").out(over), permitA, permitD).many(),
		timed(op, "finds too few with those that are over", counts("0").out(over), permitA, permitOf("another of ours."), permitOf("one more of ours")).many(),
		timed(op, "takes a free one beside one that is over", counts("1").out(ends{permitB: -1}), permitA),
		timed(op, "gives one that is over to fewer than none", counts("-2").out(ends{permitB: -1}), permitA),
		timed(op, "finds one over, the semaphore being gone", State{}.out(ends{permitB: -1}), permitA),
	}
}

func permitGives() []Case {
	op := PermitRelease
	return []Case{
		timed(op, "gives one back", counts("0").out(ends{permitA: 60000}), permitA),
		timed(op, "gives one of several back", counts("1").out(ends{permitA: 60000, permitB: noEnd}), permitA),
		timed(op, "gives one that was for ever back", counts("0").out(ends{permitA: noEnd}), permitA),
		timed(op, "finds it unknown", counts("1").out(ends{permitB: noEnd}), permitA),
		timed(op, "finds it over", counts("0").out(ends{permitA: -1}), permitA),
		timed(op, "finds it just over", counts("0").out(ends{permitA: 0}), permitA),
		timed(op, "gives to fewer than none", counts("-3").out(ends{permitA: 60000}), permitA),
		timed(op, "gives to a semaphore that is gone", State{}.out(ends{permitA: 60000}), permitA),
		timed(op, "leaves the times to live", countsFor(caseShort, "0").out(ends{permitA: 60000, permitB: noEnd}).lastsFor(caseLong), permitA),
		timed(op, "leaves others that are over", counts("0").out(ends{permitA: 60000, permitB: -1}), permitA),
	}
}

func permitGivesAll() []Case {
	op := PermitReleaseAll
	out := ends{permitA: 60000, permitB: noEnd, permitC: 50000}
	return []Case{
		timed(op, "gives two of three back", counts("0").out(out), permitA, permitB),
		timed(op, "gives all back", counts("0").out(out), permitA, permitB, permitC),
		timed(op, "finds one of two unknown", counts("0").out(out), permitA, permitD),
		timed(op, "finds one of two over", counts("0").out(ends{permitA: -1, permitB: noEnd}), permitA, permitB),
		timed(op, "gives one back, named twice", counts("0").out(out), permitA, permitA),
		timed(op, "gives one back, another being over", counts("0").out(ends{permitA: 60000, permitB: -1}), permitA),
		timed(op, "gives to a semaphore that is gone", State{}.out(out), permitA, permitB),
	}
}

func permitRenews() []Case {
	op := PermitRenew
	return []Case{
		timed(op, "makes it longer", counts("0").out(ends{permitA: 20000}), permitA),
		timed(op, "makes it shorter", counts("0").out(ends{permitA: 60000}), permitA),
		timed(op, "ends what was for ever", counts("0").out(ends{permitA: noEnd}), permitA),
		timed(op, "finds it unknown", counts("1").out(ends{permitB: 60000}), permitA),
		timed(op, "finds it over", counts("0").out(ends{permitA: -1}), permitA),
		timed(op, "finds another over", counts("0").out(ends{permitA: 20000, permitB: -1}), permitA),
		timed(op, "finds no semaphore", State{}, permitA),
	}
}

func permitLefts() []Case {
	op := PermitLeft
	return []Case{
		timed(op, "is told", counts("0").out(ends{permitA: 20000}), permitA),
		timed(op, "is told that it is for ever", counts("0").out(ends{permitA: noEnd}), permitA),
		timed(op, "finds it unknown", counts("0").out(ends{permitB: 20000}), permitA),
		timed(op, "finds it over", counts("0").out(ends{permitA: -1}), permitA),
	}
}

func permitQuestions(op *Operation) []Case {
	return []Case{
		timed(op, "is told", counts("2").out(ends{permitA: 20000, permitB: noEnd})),
		timed(op, "finds some over", counts("0").out(ends{permitA: -1, permitB: 0, permitC: 1, permitD: noEnd})),
		timed(op, "finds some over, and fewer than none", counts("-3").out(ends{permitA: -1, permitB: 20000})),
		timed(op, "finds no semaphore", State{}),
		timed(op, "finds a semaphore that is gone, and permits out", State{}.out(ends{permitA: 20000})),
	}
}

func permitSets() []Case {
	try, set := PermitsTrySet, PermitsSet
	return []Case{
		counted(try, "finds no semaphore", State{}, 5),
		counted(try, "finds an empty one", counts("0"), 5),
		counted(try, "finds a semaphore that is gone, and permits out", State{}.out(ends{permitA: 20000}), 5),
		counted(set, "finds no semaphore", State{}, 5),
		counted(set, "sets more", counts("2").out(ends{permitA: 20000}), 5),
		counted(set, "sets as many", counts("2").out(ends{permitA: 20000}), 3),
		counted(set, "sets fewer", counts("2").out(ends{permitA: 20000}), 2),
		counted(set, "sets fewer than are out", counts("0").out(ends{permitA: 20000, permitB: noEnd}), 1),
		counted(set, "counts those that are over", counts("0").out(ends{permitA: -1, permitB: noEnd}), 5),
		counted(set, "leaves the time to live", countsFor(caseShort, "2"), 5),
		counted(set, "sets none", counts("2"), 0),
	}
}

func permitAdds() []Case {
	op := PermitsAdd
	return []Case{
		counted(op, "adds to none", counts("0").out(ends{permitA: 20000}), 2),
		counted(op, "takes some away", counts("3"), -2),
		counted(op, "takes more away than there are", counts("3"), -5),
		counted(op, "adds nothing", counts("3"), 0),
		counted(op, "adds to no semaphore", State{}, 2),
		counted(op, "ends the time to live", countsFor(caseShort, "3"), 1),
	}
}
