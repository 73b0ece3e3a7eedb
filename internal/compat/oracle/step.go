package oracle

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/compat/monitor"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// Step is one operation, as both sides are to do it.
type Step struct {
	// Op is what is done.
	Op Operation
	// Names has the lock's name; for Renew it may have several.
	Names []string
	// Owner is who acts; nobody for Force.
	Owner string
	// Lease is in milliseconds; none for Force.
	Lease int64

	// Target is the count that our release names. Redisson's has none: it lowers
	// by one. RequestID is that of Redisson's unlock call; with Repeat it is the
	// one of the release before, so that the step is that release sent again.
	Target    int64
	RequestID string
	Repeat    bool
}

// String tells the step in a line.
func (s Step) String() string {
	text := fmt.Sprintf("%s %q", s.Op, s.Names)
	if s.Op != Force {
		text += fmt.Sprintf(" owner %s lease %d", s.Owner, s.Lease)
	}
	if s.Op == Free {
		text += fmt.Sprintf(" target %d", s.Target)
	}
	if s.Repeat {
		text += " again"
	}
	return text
}

// Request is one script to run.
type Request struct {
	// Script is its text.
	Script string
	// Keys and Argv are its KEYS and ARGV.
	Keys []string
	Argv []any
}

// latchFor is the time to live of latches in steps, in milliseconds.
const latchFor = 16000

// requests is the step as Redisson does it: one script, but for renewals of
// releases that take one lock at a time.
func (t *Theirs) requests(s Step) []Request {
	if s.Op != Renew {
		return []Request{t.request(s, s.Names[0])}
	}
	if !t.Release.RenewsBatches() {
		var all []Request
		for _, name := range s.Names {
			all = append(all, t.request(s, name))
		}
		return all
	}
	batch := Request{Script: t.scripts[Renew], Keys: s.Names, Argv: []any{s.Lease}}
	for range s.Names {
		batch.Argv = append(batch.Argv, s.Owner)
	}
	return []Request{batch}
}

func (t *Theirs) request(s Step, name string) Request {
	e := Expect{Op: s.Op, Name: name, Owner: s.Owner, Lease: s.Lease}
	keys, argv := e.shape(t.Release, s.RequestID)
	r := Request{Script: t.scripts[s.Op], Keys: keys}
	for _, arg := range argv {
		if arg == latchTTL {
			arg = strconv.Itoa(latchFor)
		}
		r.Argv = append(r.Argv, arg)
	}
	return r
}

// Ours is this module's side. The zero Ours is an owner of our own, whose release
// names the count it aims at.
type Ours struct {
	// Free, where set, is another way to release.
	Free func(Step) Request
	// Instead, where set, has texts to run in place of the module's own: mutants
	// that the oracle must notice.
	Instead map[*transport.Script]string
}

// request is the step as we do it.
func (o Ours) request(s Step) Request {
	if s.Op == Free && o.Free != nil {
		return o.Free(s)
	}
	var script *transport.Script
	var r Request
	switch s.Op {
	case Acquire:
		script = luasrc.Acquire
		r.Keys, r.Argv = s.Names[:1], []any{s.Lease, s.Owner, "1"}
	case Free:
		script = luasrc.Release
		r.Keys = []string{s.Names[0], codec.LockChannel(s.Names[0])}
		r.Argv = []any{s.Owner, s.Target, s.Lease, "PUBLISH", codec.MessageUnlock}
	case Force:
		script = luasrc.ForceRelease
		r.Keys = []string{s.Names[0], codec.LockChannel(s.Names[0])}
		r.Argv = []any{"PUBLISH", codec.MessageUnlock}
	case Renew:
		script = luasrc.Renew
		r.Keys = s.Names
		for range s.Names {
			r.Argv = append(r.Argv, s.Owner, s.Lease)
		}
	}
	r.Script = script.Text()
	if text, ok := o.Instead[script]; ok {
		r.Script = text
	}
	return r
}

// Identify checks that a call of ours is the step.
func (o Ours) Identify(call monitor.Call, s Step) error {
	want := o.request(s)
	var argv []string
	for _, arg := range want.Argv {
		argv = append(argv, fmt.Sprint(arg))
	}
	switch {
	case call.Script != want.Script:
		return fmt.Errorf("oracle: %s sent another script", s)
	case !slices.Equal(call.Keys, want.Keys) || !slices.Equal(call.Argv, argv):
		return fmt.Errorf("oracle: %s: want KEYS %q ARGV %q, got %q %q", s, want.Keys, argv, call.Keys, call.Argv)
	}
	return nil
}
