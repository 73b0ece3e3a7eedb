package oracle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// Kind is a kind of lock: what is compared of it, and how the sides may differ.
type Kind struct {
	// Name is the name of its file of recorded vectors.
	Name string
	// Has reports which releases have the kind; nil for all.
	Has func(Release) bool
	// Operations are in the order of the tables that tests print.
	Operations []*Operation
	// Diverges has every intended difference with its reason.
	Diverges []Divergence
	// Also has those of operations of another kind that are played along: they explain
	// differences, and need not occur.
	Also []Divergence
}

// Kinds lists the kinds of locks that are compared.
var Kinds = []*Kind{&Plain, &Fair, &Fenced, &ReadWrite, &Semaphore, &Permits, &Latch}

// KindsOf returns the kinds of locks that a release has.
func KindsOf(r Release) []*Kind {
	return slices.DeleteFunc(slices.Clone(Kinds), func(k *Kind) bool { return !k.In(r) })
}

// In reports whether a release has the kind.
func (k *Kind) In(r Release) bool { return k.Has == nil || k.Has(r) }

// OperationsOf returns the operations of the kind that a release has.
func (k *Kind) OperationsOf(r Release) []*Operation {
	return slices.DeleteFunc(slices.Clone(k.Operations), func(op *Operation) bool { return op.Has != nil && !op.Has(r) })
}

// operation returns the operation with a name.
func (k *Kind) operation(name string) (*Operation, error) {
	for _, op := range k.Operations {
		if op.Name == name {
			return op, nil
		}
	}
	return nil, fmt.Errorf("oracle: kind %s has no operation %q", k.Name, name)
}

// act is what an operation does, for the divergences.
type act int

const (
	_         act = iota
	enter         // acquire or re-enter a lock
	free          // release a lock
	renew         // renew locks
	giveUp        // leave the queue of a lock
	take          // take permits
	add           // add permits
	drain         // take all permits
	give          // release a permit with an id
	giveAll       // release several
	extend        // renew a permit
	setAll        // set the number of all permits
	countFree     // ask how many permits are free
	countAll      // ask how many there are
	countOut      // ask how many are taken
)

// Operation is one thing that both sides do with a script. The package comment says how to
// add one.
type Operation struct {
	// Name is its name in tables and recorded vectors.
	Name string
	// Theirs returns what a release calls Redisson's script with.
	Theirs func(Release, Step) Args
	// Has, where set, reports which releases have it; nil for all that have the kind.
	Has func(Release) bool
	// OneByOne, where set, reports which releases call the script once for each name, so that
	// the replies make a list.
	OneByOne func(Release) bool
	// Ours is this module's call, for an owner of our own or for a shared one. Without it the
	// operation is Redisson's alone: it is recorded, and used to make states.
	Ours func(s Step, shared bool) Call
	// TellsTime says that a positive reply is a time left, and that a new score may be made
	// from it. Both are smaller on the side that runs later.
	TellsTime bool

	act  act
	role *luasrc.Role // of a read/write lock
}

// String returns the name.
func (op *Operation) String() string { return op.Name }

// GoString returns the name, which a failed random test shows.
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

// Step is one operation, as both sides are to do it. Fields that an operation does not use are
// zero.
type Step struct {
	// Op is the operation.
	Op *Operation `json:"-"`
	// Names has the lock's name; a renewal may have several.
	Names []string `json:"names"`
	// Owner is the owner that acts.
	Owner string `json:"owner,omitempty"`
	// Lease is in milliseconds.
	Lease int64 `json:"lease,omitempty"`

	// Target is the count that our scripts name where Redisson's go up or down by one. An
	// acquire or a try without one is no re-entry.
	Target int64 `json:"target,omitempty"`
	// RequestID is that of Redisson's unlock call; with Repeat it is the one of the release
	// before, so that the step is that release sent again.
	RequestID string `json:"request,omitempty"`
	Repeat    bool   `json:"repeat,omitempty"`

	// Permits is a number of permits, or what a count is set to.
	Permits int64 `json:"permits,omitempty"`
	// IDs are those of permits, in hexadecimal digits.
	IDs []string `json:"ids,omitempty"`

	// Now is the caller's clock and Wait its waiting time, in milliseconds.
	Now  int64 `json:"now,omitempty"`
	Wait int64 `json:"wait,omitempty"`
}

// String describes the step in a line.
func (s Step) String() string {
	text, err := json.Marshal(s)
	return fmt.Sprint(s.Op, " ", cmp.Or(string(text), fmt.Sprint(err)))
}

// Arguments that a live Redisson chooses by itself are one of these in Args, and a step gives
// them a value.
const (
	latchTTL = "<latch>" // a latch's time to live, which is random
	clockNow = "<now>"   // the caller's clock
	leaseEnd = "<end>"   // when the step's lease ends by the caller's clock
)

// latchFor is the time to live of latches in steps, in milliseconds.
const latchFor = 16000

// given puts the step's values into arguments.
func (s Step) given(argv []string) []string {
	all := slices.Clone(argv)
	for i, arg := range argv {
		switch arg {
		case latchTTL:
			all[i] = strconv.Itoa(latchFor)
		case clockNow:
			all[i] = decimal(s.Now)
		case leaseEnd:
			all[i] = decimal(s.Now + s.Lease)
		}
	}
	return all
}

// clock is the caller's clock among our arguments. In a step that a live client takes it is not
// known before.
func (s Step) clock() any {
	if s.Now == 0 {
		return clockNow
	}
	return s.Now
}

// Latch is the key of the latch that a release leaves.
func (s Step) Latch() string { return codec.LatchKey(s.Names[0], s.RequestID) }
