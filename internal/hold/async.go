package hold

import (
	"sync"

	"github.com/redlatch/redlatch/internal/engine"
)

// UnlockAsync is [Hold.Unlock] on a goroutine of its own, which the client's Close waits for.
// It returns as soon as the release is on its way, so that calls that are started then reach
// the server after it, or as soon as there is none to send. The channel gets what explain
// makes of Unlock's result.
func (h *Hold) UnlockAsync(explain func(error) error) <-chan error {
	outcome := make(chan error, 1)
	s := &sending{begun: make(chan struct{})}
	unlock := func() {
		outcome <- explain(h.unlockOnce(s))
		s.Started()
	}
	if !h.ownership.lock.Engine.Go(unlock) {
		unlock() // the client is closed: nothing is sent
	}
	<-s.begun
	return outcome
}

// sending tells when a release is on its way. A nil sending tells nothing.
type sending struct {
	once  sync.Once
	begun chan struct{}
}

func (s *sending) Started() {
	if s != nil {
		s.once.Do(func() { close(s.begun) })
	}
}

// follower returns what follows a release that leaves the lock to other holds.
func (s *sending) follower() engine.Follower {
	if s == nil {
		return nil
	}
	return s
}

// freeing returns what follows the last release of an ownership.
func (s *sending) freeing(o *ownership) engine.Follower {
	if s == nil {
		return (*freeing)(o)
	}
	return &freeingAsync{o, s}
}

// freeing is an ownership whose last release is on its way.
type freeing ownership

func (f *freeing) Started() { (*ownership)(f).passTurn(true) }

// freeingAsync is one whose caller goes on as soon as it is.
type freeingAsync struct {
	ownership *ownership
	sending   *sending
}

func (f *freeingAsync) Started() {
	f.ownership.passTurn(true)
	f.sending.Started()
}
