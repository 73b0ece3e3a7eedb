package faketransport

import (
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/transport"
)

// Stalling is a transport that can delay calls and replies.
type Stalling struct {
	transport.Transport

	started atomic.Int64

	mu              sync.Mutex // guards what follows
	stalls, mutes   bool
	calls, outcomes []func()
}

// Start implements transport.Transport.
func (s *Stalling) Start(call *transport.Call, done transport.Done) {
	s.started.Add(1)
	start := func() {
		s.Transport.Start(call, func(reply any, err error) {
			if !s.delays(&s.mutes, &s.outcomes, func() { done(reply, err) }) {
				done(reply, err)
			}
		})
	}
	if s.delays(&s.stalls, &s.calls, start) {
		call.Claim(0) // it counts as sent
		return
	}
	start()
}

func (s *Stalling) delays(on *bool, all *[]func(), next func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *on {
		*all = append(*all, next)
	}
	return *on
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

// Stall delays calls until it is called with false.
func (s *Stalling) Stall(on bool) { s.set(&s.stalls, &s.calls, on) }

// Mute runs calls and delays their replies until it is called with false.
func (s *Stalling) Mute(on bool) { s.set(&s.mutes, &s.outcomes, on) }

// Started returns the number of calls so far.
func (s *Stalling) Started() int64 { return s.started.Load() }
