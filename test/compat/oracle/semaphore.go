package oracle

import (
	"slices"

	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// Semaphore is the plain counter of permits. A step's owner does not matter.
var Semaphore = Kind{
	Name: "semaphore",
	Operations: []*Operation{
		SemaphoreAcquire, SemaphoreRelease, SemaphoreReleaseIf, SemaphoreSet, SemaphoreSetFor, SemaphoreAdd, SemaphoreDrain,
	},
	Diverges: semaphoreDiverges,
	Cases:    semaphoreCases(),
}

// SemaphoreAcquire takes permits if there are as many.
var SemaphoreAcquire = &Operation{
	Name:   "acquire",
	does:   counterTake,
	Theirs: func(_ Release, s Step) []Args { return []Args{{s.Names, []string{decimal(s.Permits)}}} },
	Ours: func(s Step, _ bool) Call {
		return s.counting(func(l *luasrc.Counter, c *transport.Call) { l.Acquire(c, s.Permits) })
	},
	Check: isAsPromised,
}

// SemaphoreRelease gives permits, whether the semaphore is there or not.
var SemaphoreRelease = &Operation{
	Name:   "release",
	does:   counterAdd,
	Theirs: theirPermits,
	Ours: func(s Step, _ bool) Call {
		return s.counting(func(l *luasrc.Counter, c *transport.Call) { l.Add(c, s.Permits) })
	},
	Check: isAsPromised,
}

// SemaphoreReleaseIf gives permits to a semaphore that is there.
var SemaphoreReleaseIf = &Operation{Name: "release-if-there", does: counterAdd, Has: Release.HasReleaseIfExists, Theirs: theirPermits}

// SemaphoreSet makes a semaphore that is not there.
var SemaphoreSet = &Operation{
	Name:   "set",
	does:   counterSet,
	Theirs: theirPermits,
	Ours: func(s Step, _ bool) Call {
		return s.counting(func(l *luasrc.Counter, c *transport.Call) { l.TrySet(c, s.Permits, 0) })
	},
	Check: isAsPromised,
}

// SemaphoreSetFor makes one for the time of the step's lease.
var SemaphoreSetFor = &Operation{
	Name: "set-for",
	does: counterSetFor,
	Has:  Release.HasSemaphoreTTL,
	Theirs: func(r Release, s Step) []Args {
		a := theirPermits(r, s)
		a[0].Argv = append(a[0].Argv, decimal(s.Lease))
		return a
	},
	Ours: func(s Step, _ bool) Call {
		return s.counting(func(l *luasrc.Counter, c *transport.Call) { l.TrySet(c, s.Permits, s.Lease) })
	},
	Check: isAsPromised,
}

// SemaphoreAdd changes how many permits there are, up or down.
var SemaphoreAdd = &Operation{
	Name:   "add",
	does:   counterAdd,
	Theirs: theirPermits,
	Ours: func(s Step, _ bool) Call {
		return s.counting(func(l *luasrc.Counter, c *transport.Call) { l.Add(c, s.Permits) })
	},
	Check: isAsPromised,
}

// SemaphoreDrain takes all permits.
var SemaphoreDrain = &Operation{
	Name:   "drain",
	does:   counterDrain,
	Theirs: func(_ Release, s Step) []Args { return []Args{{s.Names, []string{}}} },
	Ours: func(s Step, _ bool) Call {
		return s.counting(func(l *luasrc.Counter, c *transport.Call) { l.Drain(c) })
	},
	Check: isAsPromised,
}

// counting is a call of ours about the step's counter.
func (s Step) counting(fill func(l *luasrc.Counter, c *transport.Call)) Call {
	l := luasrc.Counter{Key: s.Names[0], Channel: semaphoreChannel(s.Names[0]), Publish: "PUBLISH"}
	return filled(func(c *transport.Call) { fill(&l, c) })
}

// theirPermits is a call of Redisson's that tells waiters.
func theirPermits(r Release, s Step) []Args {
	return []Args{s.told(r, Args{[]string{s.Names[0], semaphoreChannel(s.Names[0])}, []string{decimal(s.Permits)}})}
}

// told completes the arguments of a call that publishes.
func (s Step) told(r Release, a Args) Args {
	if r.NamesPublish() {
		a.Argv = append(a.Argv, "PUBLISH")
	}
	return a
}

// semaphoreChannel is where both kinds of semaphores tell their waiters.
func semaphoreChannel(name string) string { return "redisson_sc:" + braced(name) }

// permitCase is a case about the one semaphore, or latch.
func permitCase(op *Operation, does string, before State, permits int64, ids ...string) Case {
	s := Step{Op: op, Names: []string{caseName}, Permits: permits, IDs: ids}
	return Case{Does: does, Before: before, Step: s}
}

// counts is a state in which the counter of the cases is there.
func counts(value string) State { return lockIs(textOf(never, value)) }

// countsFor is the same with a time to live.
func countsFor(left int64, value string) State { return lockIs(textOf(left, value)) }

// spoiltCounters are cases in which the counter is something else.
func spoiltCounters(op *Operation, permits int64, ids ...string) []Case {
	return []Case{
		permitCase(op, "finds a text", counts("no number"), permits, ids...),
		permitCase(op, "finds a hash", lockIs(hashOf(caseLong, caseOwner, "1")), permits, ids...),
		permitCase(op, "finds a list", lockIs(listOf("1")), permits, ids...),
	}
}

// every completes cases that mean the same.
func every(cases []Case, meant ...string) []Case {
	for i := range cases {
		cases[i].Meant = meant
	}
	return cases
}

// eachName are cases of a counter, or of none, for each of the names.
func eachName(op *Operation, value string, permits int64, ids ...string) (all []Case) {
	for _, name := range caseNames {
		c := permitCase(op, "of "+name, State{}, permits, ids...)
		c.Step.Names = []string{name}
		if value != "" {
			c.Before[name] = textOf(never, value)
		}
		all = append(all, c)
	}
	return all
}

func semaphoreCases() []Case {
	return slices.Concat(
		semaphoreTakes(), semaphoreGives(SemaphoreRelease), semaphoreGives(SemaphoreReleaseIf),
		semaphoreSets(SemaphoreSet, 0), semaphoreSets(SemaphoreSetFor, caseShort), semaphoreAdds(), semaphoreDrains(),
	)
}

func semaphoreTakes() []Case {
	op := SemaphoreAcquire
	return slices.Concat(every(eachName(op, "3", 1), semReply), spoiltCounters(op, 1), []Case{
		permitCase(op, "takes all", counts("3"), 3).meant(semReply),
		permitCase(op, "finds too few", counts("3"), 4).meant(semReply),
		permitCase(op, "finds none", counts("0"), 1).meant(semReply),
		permitCase(op, "finds fewer than none", counts("-2"), 1).meant(semReply),
		permitCase(op, "finds no semaphore", State{}, 1).meant(semReply),
		permitCase(op, "leaves the time to live", countsFor(caseShort, "3"), 2),
		permitCase(op, "takes one of 2^53+1", counts("9007199254740993"), 1).meant(semReply),
	})
}

func semaphoreGives(op *Operation) []Case {
	return slices.Concat(every(eachName(op, "3", 2), semReply, semMessages), spoiltCounters(op, 2), []Case{
		permitCase(op, "gives to none", counts("0"), 2).meant(semReply, semMessages),
		permitCase(op, "gives to fewer than none", counts("-5"), 2).meant(semReply, semSilent),
		permitCase(op, "gives to no semaphore", State{}, 2).meant(semReply, semMessages),
		permitCase(op, "leaves the time to live", countsFor(caseShort, "3"), 1).meant(semReply),
		permitCase(op, "cannot count above 2^63-1", counts("9223372036854775807"), 1),
		permitCase(op, "gives one to 2^53+1", counts("9007199254740993"), 1).meant(semReply),
	})
}

func semaphoreSets(op *Operation, lease int64) []Case {
	all := slices.Concat(every(eachName(op, "", 5), semMessages), []Case{
		permitCase(op, "finds one", counts("3"), 5),
		permitCase(op, "finds one that is empty", counts("0"), 5),
		permitCase(op, "finds one with a time to live", countsFor(caseLong, "3"), 5),
		permitCase(op, "finds a hash", lockIs(hashOf(caseLong, caseOwner, "1")), 5),
		permitCase(op, "sets none", State{}, 0).meant(semSilent),
	})
	for i := range all {
		all[i].Step.Lease = lease
	}
	return all
}

func semaphoreAdds() []Case {
	op := SemaphoreAdd
	return slices.Concat(every(eachName(op, "3", 2), semReply, semMessages), spoiltCounters(op, 2), []Case{
		permitCase(op, "takes some away", counts("3"), -2).meant(semReply, semSilent),
		permitCase(op, "takes more away than there are", counts("3"), -5).meant(semReply, semSilent),
		permitCase(op, "adds nothing", counts("3"), 0).meant(semReply, semSilent),
		permitCase(op, "adds to no semaphore", State{}, 2).meant(semReply, semMessages),
		permitCase(op, "takes from no semaphore", State{}, -2).meant(semReply, semSilent),
		permitCase(op, "ends the time to live", countsFor(caseShort, "3"), 1).meant(semReply, semLives),
	})
}

func semaphoreDrains() []Case {
	op := SemaphoreDrain
	return slices.Concat(every(eachName(op, "3", 0), semReply), every(spoiltCounters(op, 0)[:1], semSpoilt), spoiltCounters(op, 0)[1:], []Case{
		permitCase(op, "finds none", counts("0"), 0).meant(semReply),
		permitCase(op, "finds fewer than none", counts("-5"), 0).meant(semReply),
		permitCase(op, "finds no semaphore", State{}, 0),
		permitCase(op, "ends the time to live", countsFor(caseShort, "3"), 0).meant(semReply, semLives),
	})
}
