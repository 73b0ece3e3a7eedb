package oracle

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/transport"
)

// Kind is a kind of lock: what is compared of it, and how the sides may differ.
type Kind struct {
	// Name begins the names of its recorded files.
	Name string
	// Has tells which releases have the kind; nil for all.
	Has func(Release) bool
	// Operations are in the order of the tables that tests print.
	Operations []*Operation
	// Diverges has every difference that is meant, each with its reason.
	Diverges []Divergence
	// Also has those of operations of another kind that are played along: they explain
	// differences, and need not occur.
	Also []Divergence
	// Cases are what is recorded.
	Cases []Case
}

// Kinds lists the kinds of locks that are compared.
var Kinds = []*Kind{&Plain, &Fair, &Fenced, &ReadWrite, &Semaphore, &Permits, &Latch}

// KindsOf returns the kinds of locks that a release has.
func KindsOf(r Release) []*Kind {
	return slices.DeleteFunc(slices.Clone(Kinds), func(k *Kind) bool { return !k.In(r) })
}

// In tells whether a release has the kind.
func (k *Kind) In(r Release) bool { return k.Has == nil || k.Has(r) }

// OperationsOf returns what a release does of the kind.
func (k *Kind) OperationsOf(r Release) []*Operation {
	return slices.DeleteFunc(slices.Clone(k.Operations), func(op *Operation) bool { return !op.In(r) })
}

// In tells whether a release does it.
func (op *Operation) In(r Release) bool { return op.Has == nil || op.Has(r) }

// Operation is one thing that both sides do by a script. The package comment
// tells how to add one.
type Operation struct {
	// Name is what tables and recorded vectors call it.
	Name string
	// Theirs is what Redisson's script is called with, by release.
	Theirs func(Release, Step) []Args
	// Has, where set, tells which releases do it at all; nil for all that have the kind.
	Has func(Release) bool
	// OneByOne, where set, tells for which releases Theirs has a call for each
	// name, so that their replies make a list.
	OneByOne func(Release) bool
	// Ours is this module's call, for an owner of our own or for one that others
	// use, too. Without it the operation is one of Redisson's alone: it is recorded, and
	// brings about states.
	Ours func(s Step, shared bool) Call
	// TellsTime says that a positive reply is the time that something has left,
	// and that a score which is new may be made from it. Both are smaller on the
	// side that runs later.
	TellsTime bool
	// Redates says that a time to live may be set to what was left, which makes it later by
	// the milliseconds that pass in the script, if any: so either side may be the later one.
	Redates bool
	// Check, where set, is what must be true on each side by itself, to the
	// millisecond.
	Check func(*Outcome, *Seen) error

	// act is what is done to a read/write lock, by a writer if writes is true.
	act    rwAct
	writes bool
	// does is what is done to a semaphore or latch.
	does poolAct
}

// String returns the name.
func (op *Operation) String() string { return op.Name }

// GoString returns the name: it is what a failed random test shows.
func (op *Operation) GoString() string { return op.Name }

// Args is what one call of a script is given.
type Args struct {
	// Keys and Argv are its KEYS and ARGV.
	Keys []string `json:"keys"`
	Argv []string `json:"argv"`
}

// Call is one call of a script of this module.
type Call struct {
	// Script is the script.
	Script *transport.Script
	// Keys and Argv are its KEYS and ARGV.
	Keys []string
	Argv []any
}

// filled returns the call that fill fills in.
func filled(fill func(c *transport.Call)) Call {
	var c transport.Call
	fill(&c)
	call := Call{Script: c.Script, Argv: c.Args[c.NumKeys:]}
	for i := range c.NumKeys {
		call.Keys = append(call.Keys, c.Key(i))
	}
	return call
}

// Step is one operation, as both sides are to do it. What an operation has no use
// for is zero.
type Step struct {
	// Op is what is done.
	Op *Operation `json:"-"`
	// Names has the lock's name; a renewal may have several.
	Names []string `json:"names"`
	// Owner is the owner that acts.
	Owner string `json:"owner,omitempty"`
	// Lease is in milliseconds.
	Lease int64 `json:"lease,omitempty"`

	// Target is the count that our scripts name where Redisson's go up or down by
	// one. An acquire or a try without one is no re-entry.
	Target int64 `json:"target,omitempty"`
	// RequestID is that of Redisson's unlock call; with Repeat it is the one of
	// the release before, so that the step is that release sent again.
	RequestID string `json:"request,omitempty"`
	Repeat    bool   `json:"repeat,omitempty"`

	// Permits is how many permits an operation is about, or what a count is set to.
	Permits int64 `json:"permits,omitempty"`
	// IDs are those of permits, in hexadecimal digits.
	IDs []string `json:"ids,omitempty"`

	// Now is the caller's clock and Wait its waiting time, in milliseconds.
	Now  int64 `json:"now,omitempty"`
	Wait int64 `json:"wait,omitempty"`
}

// String tells the step in a line.
func (s Step) String() string {
	text := fmt.Sprintf("%s %q", s.Op, s.Names)
	if s.Owner != "" {
		text += fmt.Sprintf(" owner %s lease %d target %d", s.Owner, s.Lease, s.Target)
	}
	if s.Permits != 0 || len(s.IDs) > 0 {
		text += fmt.Sprintf(" permits %d %q lease %d", s.Permits, s.IDs, s.Lease)
	}
	if s.Now != 0 {
		text += fmt.Sprintf(" now %d wait %d", s.Now, s.Wait)
	}
	if s.Repeat {
		text += " again"
	}
	return text
}

// Arguments that a live Redisson chooses by itself stand in Args as one of these,
// and a step gives them a value.
const (
	latchTTL = "<latch>" // a latch's time to live, which is random
	clockNow = "<now>"   // the caller's clock
	leaseEnd = "<end>"   // when the step's lease ends by the caller's clock
)

// latchFor is the time to live of latches in steps, in milliseconds.
const latchFor = 16000

// given puts the step's values into arguments.
func (s Step) given(argv []string) []string {
	all := make([]string, len(argv))
	for i, arg := range argv {
		switch arg {
		case latchTTL:
			arg = strconv.Itoa(latchFor)
		case clockNow:
			arg = strconv.FormatInt(s.Now, 10)
		case leaseEnd:
			arg = strconv.FormatInt(s.Now+s.Lease, 10)
		}
		all[i] = arg
	}
	return all
}

// clock is the caller's clock among our arguments. In a step that a live client
// takes it is not known before.
func (s Step) clock() any {
	if s.Now == 0 {
		return clockNow
	}
	return s.Now
}

// request is one script to run.
type request struct {
	script string
	keys   []string
	argv   []any
}

// calls returns what the step's scripts are called with.
func (t *Theirs) calls(s Step) []Args {
	all := s.Op.Theirs(t.Release, s)
	for i := range all {
		all[i].Argv = s.given(all[i].Argv)
	}
	return all
}

// requests is the step as Redisson does it.
func (t *Theirs) requests(s Step) []request {
	var all []request
	for _, args := range t.calls(s) {
		r := request{script: t.scripts[s.Op], keys: args.Keys}
		for _, arg := range args.Argv {
			r.argv = append(r.argv, arg)
		}
		all = append(all, r)
	}
	return all
}

// isList tells whether the replies of a step make a list.
func (t *Theirs) isList(s Step) bool {
	return s.Op.OneByOne != nil && s.Op.OneByOne(t.Release)
}
