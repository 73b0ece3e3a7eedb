package oracle

import (
	"cmp"
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

// of is a case of some releases.
func (c Case) of(has func(Release) bool) Case {
	c.Of = has
	return c
}

// many is a case of releases that take several permits at once.
func (c Case) many() Case { return c.of(Release.TakesManyPermits) }

func releasesSome(r Release) bool { return !r.ReleasesAllOrNone() }
func tellsAlways(r Release) bool  { return !r.NamesPublish() }

// permitsCases are in the order of the operations.
func permitsCases() []Case {
	all := slices.Concat(
		permitNameCases(), permitTakes(), permitPrunes(), permitGives(), permitGivesAll(), permitRenews(), permitLefts(),
		permitQuestions(PermitsFree), permitQuestions(PermitsAll), permitQuestions(PermitsOut), permitSets(), permitAdds(),
	)
	slices.SortStableFunc(all, func(a, b Case) int {
		return cmp.Compare(slices.Index(permitOperations, a.Step.Op), slices.Index(permitOperations, b.Step.Op))
	})
	return all
}

// permitMeant has the divergences of each operation: of a semaphore that is not spoilt, of one
// whose counter is a text or another type, and of one whose ends are a text.
var permitMeant = map[*Operation]struct{ sound, text, other, ends []string }{
	PermitAcquire:    {sound: []string{semReply}},
	PermitRelease:    {[]string{semReply}, []string{semSpoilt}, []string{semSpoilt}, nil},
	PermitReleaseAll: {[]string{semReply}, []string{semSpoilt}, []string{semSpoilt}, nil},
	PermitRenew:      {[]string{semReply}, []string{semReply}, []string{semReply}, []string{permitSpoilt}},
	PermitsFree:      {sound: []string{semReply}, text: []string{semSpoilt}},
	PermitsAll:       {sound: []string{semReply}},
	PermitsOut:       {[]string{semReply}, []string{semSpoilt}, []string{semSpoilt}, nil},
	PermitsSet:       {sound: []string{semReply, semSilent}},
	PermitsAdd:       {sound: []string{semReply, semMessages}, ends: []string{semReply, semMessages}},
}

// permitNameCases do everything to semaphores of each name, and to those that are spoilt.
func permitNameCases() (all []Case) {
	for _, op := range permitOperations {
		meant := permitMeant[op]
		spoilt := spoiltCounters(op, 2, permitA)
		ends := permitCase(op, "finds ends that are a text", counts("3"), 2, permitA).meant(meant.ends...)
		ends.Before[ends.Step.permitKeys()[1]] = textOf(never, "no set")
		cases := slices.Concat(
			every(eachName(op, "3", 2, permitA), meant.sound...),
			every(spoilt[:1], meant.text...), every(spoilt[1:], meant.other...), []Case{ends},
		)
		for _, c := range cases {
			c.Step.Now, c.Step.Lease = caseNow, caseLease
			all = append(all, c)
		}
	}
	return all
}

func permitTakes() []Case {
	op := PermitAcquire
	return []Case{
		timed(PermitAcquireForEver, "takes one", counts("3"), permitA),
		timed(op, "takes two", counts("3"), permitA, permitB).many().meant(semReply),
		timed(op, "takes all", counts("3"), permitA, permitB, permitC).many().meant(semReply),
		timed(op, "finds too few", counts("1"), permitA, permitB).many().meant(semReply),
		timed(op, "finds no semaphore", State{}, permitA).meant(semReply),
		timed(op, "finds fewer than none", counts("-2"), permitA).meant(semReply),
		timed(op, "takes one with no lease at all", counts("3"), permitA).lasting(0).meant(semReply),
		timed(op, "takes one whose lease is over", counts("3"), permitA).lasting(-5000).meant(semReply),
		timed(op, "copies the time to live", countsFor(caseShort, "3"), permitA).meant(semReply),
		timed(op, "copies the time to live over another", countsFor(caseShort, "3").out(ends{permitB: 60000}).lastsFor(caseLong), permitA).meant(semReply),
		timed(op, "leaves the time to live of the ends alone", counts("3").out(ends{permitB: 60000}).lastsFor(caseLong), permitA).meant(semReply),
		timed(op, "finds one out for a time", counts("0").out(ends{permitB: 60000}), permitA).meant(semReply),
		timed(op, "finds two out, and one for ever", counts("0").out(ends{permitB: 60000, permitC: 50000, permitD: noEnd}), permitA).meant(semReply),
		timed(op, "finds one out for ever", counts("0").out(ends{permitB: noEnd}), permitA).meant(semReply),
		timed(op, "takes one beside others", counts("1").out(ends{permitB: noEnd, permitC: 60000}), permitA).meant(semReply),
		timed(op, "takes an id that is out", counts("1").out(ends{permitA: 60000}), permitA).meant(semReply),
		timed(op, "takes an id twice", counts("3"), permitA, permitA).many().meant(semReply),
	}
}

// permitPrunes are about permits whose lease is over.
func permitPrunes() []Case {
	op := PermitAcquire
	over := ends{permitB: -1000, permitC: -500, permitD: noEnd}
	return []Case{
		timed(op, "takes one that is over", counts("0").out(ends{permitB: -1}), permitA).meant(semReply, permitOver),
		timed(op, "takes one that is just over", counts("0").out(ends{permitB: 0}), permitA).meant(semReply, permitOver),
		timed(op, "does not take one that is all but over", counts("0").out(ends{permitB: 1}), permitA).meant(semReply),
		timed(op, "takes one of two that are over", counts("0").out(over), permitA).meant(semReply, permitOver),
		timed(op, "takes two that are over", counts("0").out(over), permitA, permitD).many().meant(semReply, permitOver),
		timed(op, "finds too few with those that are over", counts("0").out(over), permitA, permitOf("another of ours."), permitOf("one more of ours")).many().meant(semReply, semMessages),
		timed(op, "takes a free one beside one that is over", counts("1").out(ends{permitB: -1}), permitA).meant(semReply, semMessages),
		timed(op, "gives one that is over to fewer than none", counts("-2").out(ends{permitB: -1}), permitA).meant(semReply),
		timed(op, "finds one over, the semaphore being gone", State{}.out(ends{permitB: -1}), permitA).meant(semReply, permitOver),
	}
}

func permitGives() []Case {
	op := PermitRelease
	return []Case{
		timed(op, "gives one back", counts("0").out(ends{permitA: 60000}), permitA).meant(semReply),
		timed(op, "gives one of several back", counts("1").out(ends{permitA: 60000, permitB: noEnd}), permitA).meant(semReply),
		timed(op, "gives one that was for ever back", counts("0").out(ends{permitA: noEnd}), permitA).meant(semReply),
		timed(op, "finds it unknown", counts("1").out(ends{permitB: noEnd}), permitA).meant(semReply),
		timed(op, "finds it over", counts("0").out(ends{permitA: -1}), permitA).meant(semReply),
		timed(op, "finds it just over", counts("0").out(ends{permitA: 0}), permitA).meant(semReply),
		timed(op, "gives to fewer than none", counts("-3").out(ends{permitA: 60000}), permitA).meant(semReply, semSilent),
		timed(op, "gives to a semaphore that is gone", State{}.out(ends{permitA: 60000}), permitA).meant(semReply),
		timed(op, "leaves the times to live", countsFor(caseShort, "0").out(ends{permitA: 60000, permitB: noEnd}).lastsFor(caseLong), permitA).meant(semReply),
		timed(op, "leaves others that are over", counts("0").out(ends{permitA: 60000, permitB: -1}), permitA).meant(semReply),
	}
}

func permitGivesAll() []Case {
	op := PermitReleaseAll
	out := ends{permitA: 60000, permitB: noEnd, permitC: 50000}
	return []Case{
		timed(op, "gives two of three back", counts("0").out(out), permitA, permitB).meant(semReply, semMessages),
		timed(op, "gives all back", counts("0").out(out), permitA, permitB, permitC).meant(semReply, semMessages),
		timed(op, "finds one of two unknown", counts("0").out(out), permitA, permitD).meant(permitPartial).of(Release.ReleasesAllOrNone),
		timed(op, "gives one back, another being unknown", counts("0").out(out), permitA, permitD).meant(semReply).of(releasesSome),
		timed(op, "finds one of two over", counts("0").out(ends{permitA: -1, permitB: noEnd}), permitA, permitB).meant(permitOver),
		timed(op, "gives one back, named twice", counts("0").out(out), permitA, permitA).meant(semReply),
		timed(op, "gives one back, another being over", counts("0").out(ends{permitA: 60000, permitB: -1}), permitA).meant(semReply, permitOver),
		timed(op, "gives to a semaphore that is gone", State{}.out(out), permitA, permitB).meant(semReply, semMessages),
	}
}

func permitRenews() []Case {
	op := PermitRenew
	return []Case{
		timed(op, "makes it longer", counts("0").out(ends{permitA: 20000}), permitA).meant(semReply),
		timed(op, "makes it shorter", counts("0").out(ends{permitA: 60000}), permitA).meant(semReply, permitShorter),
		timed(op, "ends what was for ever", counts("0").out(ends{permitA: noEnd}), permitA).meant(semReply, permitShorter),
		timed(op, "finds it unknown", counts("1").out(ends{permitB: 60000}), permitA).meant(semReply),
		timed(op, "finds it over", counts("0").out(ends{permitA: -1}), permitA).meant(permitOver),
		timed(op, "finds another over", counts("0").out(ends{permitA: 20000, permitB: -1}), permitA).meant(semReply, permitOver),
		timed(op, "finds no semaphore", State{}, permitA).meant(semReply),
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
		timed(op, "is told", counts("2").out(ends{permitA: 20000, permitB: noEnd})).meant(semReply),
		timed(op, "finds some over", counts("0").out(ends{permitA: -1, permitB: 0, permitC: 1, permitD: noEnd})).meant(semReply, permitOver),
		timed(op, "finds some over, and fewer than none", counts("-3").out(ends{permitA: -1, permitB: 20000})).meant(semReply, permitOver),
		timed(op, "finds no semaphore", State{}).meant(semReply),
		timed(op, "finds a semaphore that is gone, and permits out", State{}.out(ends{permitA: 20000})).meant(semReply),
	}
}

func permitSets() []Case {
	try, set := PermitsTrySet, PermitsSet
	return []Case{
		counted(try, "finds no semaphore", State{}, 5).meant(semMessages),
		counted(try, "finds an empty one", counts("0"), 5),
		counted(try, "finds a semaphore that is gone, and permits out", State{}.out(ends{permitA: 20000}), 5).meant(semMessages),
		counted(set, "finds no semaphore", State{}, 5).meant(semReply, semMessages),
		counted(set, "sets more", counts("2").out(ends{permitA: 20000}), 5).meant(semReply, semMessages),
		counted(set, "sets as many", counts("2").out(ends{permitA: 20000}), 3).meant(semReply).of(Release.NamesPublish),
		counted(set, "sets as many, and tells", counts("2").out(ends{permitA: 20000}), 3).meant(semReply, semSilent).of(tellsAlways),
		counted(set, "sets fewer", counts("2").out(ends{permitA: 20000}), 2).meant(semReply, semSilent),
		counted(set, "sets fewer than are out", counts("0").out(ends{permitA: 20000, permitB: noEnd}), 1).meant(semReply, semSilent),
		counted(set, "counts those that are over", counts("0").out(ends{permitA: -1, permitB: noEnd}), 5).meant(semReply, semMessages),
		counted(set, "leaves the time to live", countsFor(caseShort, "2"), 5).meant(semReply, semMessages),
		counted(set, "sets none", counts("2"), 0).meant(semReply, semSilent),
	}
}

func permitAdds() []Case {
	op := PermitsAdd
	return []Case{
		counted(op, "adds to none", counts("0").out(ends{permitA: 20000}), 2).meant(semReply, semMessages),
		counted(op, "takes some away", counts("3"), -2).meant(semReply),
		counted(op, "takes more away than there are", counts("3"), -5).meant(semReply),
		counted(op, "adds nothing", counts("3"), 0).meant(semReply),
		counted(op, "adds to no semaphore", State{}, 2).meant(semReply, semMessages),
		counted(op, "ends the time to live", countsFor(caseShort, "3"), 1).meant(semReply, semMessages, semLives),
	}
}
