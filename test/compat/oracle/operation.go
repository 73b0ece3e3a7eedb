package oracle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// Kind is a kind of lock, semaphore or latch.
type Kind struct {
	Name       string
	Has        func(Release) bool
	Operations []*Operation
	Diverges   []Divergence
	// Also lists divergences of another kind that may occur.
	Also []Divergence
}

// Kinds lists all kinds that are compared.
var Kinds = []*Kind{&Plain, &Fair, &Fenced, &ReadWrite, &Semaphore, &Permits, &Latch}

// KindsOf returns the kinds that a release has.
func KindsOf(r Release) []*Kind {
	return slices.DeleteFunc(slices.Clone(Kinds), func(k *Kind) bool { return !k.In(r) })
}

// In reports whether a release has the kind.
func (k *Kind) In(r Release) bool { return k.Has == nil || k.Has(r) }

// OperationsOf returns the operations that a release has.
func (k *Kind) OperationsOf(r Release) []*Operation {
	return slices.DeleteFunc(slices.Clone(k.Operations), func(op *Operation) bool { return op.Has != nil && !op.Has(r) })
}

func (k *Kind) operation(name string) (*Operation, error) {
	for _, op := range k.Operations {
		if op.Name == name {
			return op, nil
		}
	}
	return nil, fmt.Errorf("oracle: kind %s has no operation %q", k.Name, name)
}

// act classifies operations for the divergences.
type act int

const (
	_ act = iota
	enter
	free
	renew
	giveUp
	take
	add
	drain
	give
	giveAll
	extend
	setAll
	countFree
	countAll
	countOut
)

// Operation is an operation for which both sides have a script.
type Operation struct {
	Name   string
	Theirs func(Release, Step) Args
	Has    func(Release) bool
	// OneByOne reports whether a release calls the script once per name.
	OneByOne func(Release) bool
	// Ours returns our call. It is nil if only Redisson has the operation.
	Ours func(s Step, shared bool) Call
	// TellsTime is set if the reply is a remaining time, which is shorter on the side that runs later.
	TellsTime bool

	act  act
	role *luasrc.Role
}

// String returns the name.
func (op *Operation) String() string { return op.Name }

// GoString returns the name, which failed random tests print.
func (op *Operation) GoString() string { return op.Name }

// Args are the KEYS and ARGV of a call to Redisson's script.
type Args struct {
	Keys []string `json:"keys"`
	Argv []string `json:"argv"`
}

// Call is a call to our script.
type Call struct {
	Script *transport.Script
	Keys   []string
	Argv   []any
}

func filled(fill func(c *transport.Call)) Call {
	var c transport.Call
	fill(&c)
	call := Call{Script: c.Script, Argv: c.Args[c.NumKeys:]}
	for i := range c.NumKeys {
		call.Keys = append(call.Keys, c.Key(i))
	}
	return call
}

// Step is one operation and its arguments. Unused fields are zero.
type Step struct {
	Op    *Operation `json:"-"`
	Names []string   `json:"names"`
	Owner string     `json:"owner,omitempty"`
	Lease int64      `json:"lease,omitempty"`

	// Target is the count that our script sets.
	Target int64 `json:"target,omitempty"`
	// RequestID identifies Redisson's unlock. If Repeat is set, the previous release is sent again.
	RequestID string `json:"request,omitempty"`
	Repeat    bool   `json:"repeat,omitempty"`

	Permits int64 `json:"permits,omitempty"`
	// IDs are permit IDs in hexadecimal.
	IDs []string `json:"ids,omitempty"`

	// Now and Wait are in milliseconds.
	Now  int64 `json:"now,omitempty"`
	Wait int64 `json:"wait,omitempty"`
}

// String describes the step in one line.
func (s Step) String() string {
	text, err := json.Marshal(s)
	return fmt.Sprint(s.Op, " ", cmp.Or(string(text), fmt.Sprint(err)))
}

// Placeholders in Args for arguments that a live Redisson client chooses.
const (
	latchTTL = "<latch>"
	clockNow = "<now>"
	leaseEnd = "<end>"
)

const latchFor = 16000

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

func (s Step) clock() any {
	if s.Now == 0 {
		return clockNow
	}
	return s.Now
}

// Latch returns the key of the release's latch.
func (s Step) Latch() string { return protocol.LatchKey(s.Names[0], s.RequestID) }
