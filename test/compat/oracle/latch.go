package oracle

import (
	"slices"

	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// Latch is the count-down latch.
var Latch = Kind{
	Name:       "latch",
	Operations: []*Operation{LatchSet, LatchCountDown, LatchDelete},
	Diverges:   latchDiverges,
	Cases:      latchKindCases(),
}

// The messages of a latch: it is open, or it is closed or gone.
const latchOpen, latchClosed = "0", "1"

// LatchSet closes a latch that is open.
var LatchSet = &Operation{
	Name: "set",
	does: latchSet,
	Theirs: func(r Release, s Step) []Args {
		return []Args{s.told(r, Args{latchKeys(s), []string{latchClosed, decimal(s.Permits)}})}
	},
	Ours: func(s Step, _ bool) Call {
		return s.ofLatch(func(l *luasrc.Latch, c *transport.Call) { l.Set(c, s.Permits) })
	},
	Check: isAsPromised,
}

// LatchCountDown counts one down.
var LatchCountDown = &Operation{
	Name: "count-down",
	does: latchDown,
	Theirs: func(r Release, s Step) []Args {
		return []Args{s.told(r, Args{latchKeys(s), []string{latchOpen}})}
	},
	Ours: func(s Step, _ bool) Call {
		return s.ofLatch(func(l *luasrc.Latch, c *transport.Call) { l.CountDown(c) })
	},
	Check: isAsPromised,
}

// LatchDelete removes a latch.
var LatchDelete = &Operation{
	Name: "delete",
	does: latchDelete,
	Theirs: func(r Release, s Step) []Args {
		return []Args{s.told(r, Args{latchKeys(s), []string{latchClosed}})}
	},
	Ours:  func(s Step, _ bool) Call { return s.ofLatch(func(l *luasrc.Latch, c *transport.Call) { l.Delete(c) }) },
	Check: isAsPromised,
}

// ofLatch is a call of ours about the step's latch.
func (s Step) ofLatch(fill func(l *luasrc.Latch, c *transport.Call)) Call {
	keys := latchKeys(s)
	l := luasrc.Latch{Key: keys[0], Channel: keys[1], Publish: "PUBLISH"}
	return filled(func(c *transport.Call) { fill(&l, c) })
}

// latchKeys are a latch and its channel, whose name has braces in any case.
func latchKeys(s Step) []string {
	name := s.Names[0]
	return []string{name, "redisson_countdownlatch__channel__{" + name + "}"}
}

func latchKindCases() []Case {
	set, down, del := LatchSet, LatchCountDown, LatchDelete
	return slices.Concat(eachName(set, "", 2), []Case{
		permitCase(set, "finds it closed", counts("2"), 5),
		permitCase(set, "finds it closed for a time", countsFor(caseShort, "2"), 5),
		permitCase(set, "finds it at zero", counts("0"), 5),
		permitCase(set, "sets nothing", State{}, 0),
		permitCase(set, "sets less than nothing", State{}, -3),
		permitCase(set, "finds a hash", lockIs(hashOf(caseLong, caseOwner, "1")), 5).meant(latchSpoilt),
	}, eachName(down, "2", 0), spoiltCounters(down, 0), []Case{
		permitCase(down, "opens it", counts("1"), 0),
		permitCase(down, "finds it open", State{}, 0),
		permitCase(down, "finds it at zero", counts("0"), 0),
		permitCase(down, "finds it below zero", counts("-3"), 0),
		permitCase(down, "leaves the time to live", countsFor(caseShort, "3"), 0),
	}, eachName(del, "2", 0), []Case{
		permitCase(del, "finds it open", State{}, 0),
		permitCase(del, "deletes a hash", lockIs(hashOf(caseLong, caseOwner, "1")), 0).meant(latchSpoilt),
	})
}
