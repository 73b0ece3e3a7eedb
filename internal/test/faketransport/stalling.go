package faketransport

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/transport"
)

// Stalling is a transport that can delay calls and replies.
type Stalling struct {
	transport.Transport

	started atomic.Int64

	mu              sync.Mutex // guards the fields below
	stalls, mutes   bool
	calls, outcomes []func()
}

// Start implements transport.Transport.
func (s *Stalling) Start(call *transport.Call, done transport.Done) {
	s.started.Add(1)
	start := func(call *transport.Call) {
		s.Transport.Start(call, func(reply any, err error) {
			if !s.delaysReply(func() { done(reply, err) }) {
				done(reply, err)
			}
		})
	}
	s.mu.Lock()
	if s.stalls {
		sent := InFlight(call)
		s.calls = append(s.calls, func() { start(sent) })
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	start(call)
}

// InFlight claims a call and returns a copy that, like a call on the network, runs even if the caller has returned.
func InFlight(call *transport.Call) *transport.Call {
	call.Claim(0)
	return &transport.Call{
		Script: call.Script, Command: call.Command, NumKeys: call.NumKeys, Args: slices.Clone(call.Args), Urgent: call.Urgent, Vital: call.Vital,
	}
}

func (s *Stalling) delaysReply(deliver func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mutes {
		s.outcomes = append(s.outcomes, deliver)
	}
	return s.mutes
}

func (s *Stalling) set(mode *bool, all *[]func(), on bool) {
	s.mu.Lock()
	*mode = on
	delayed := *all
	*all = nil
	s.mu.Unlock()
	for _, next := range delayed {
		next()
	}
}

// Stall delays calls until Stall(false) is called.
func (s *Stalling) Stall(on bool) { s.set(&s.stalls, &s.calls, on) }

// Mute runs calls, but delays their replies until Mute(false) is called.
func (s *Stalling) Mute(on bool) { s.set(&s.mutes, &s.outcomes, on) }

// Started returns the number of calls that have been started.
func (s *Stalling) Started() int64 { return s.started.Load() }
