package worker

import (
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/test/stress/internal/history"
)

const (
	// samplePause is how often every hold is looked at.
	samplePause = 20 * time.Millisecond
	// minMove is how far a deadline must have moved to be worth a line, and staleness how old
	// the last line may be.
	minMove   = 100 * time.Millisecond
	staleness = 300 * time.Millisecond
)

// held is what a hold of any kind says of itself.
type held interface {
	Err() error
	Remaining() time.Duration
	Context(parent context.Context) context.Context
}

// sampledHold is a hold as its session knows it.
type sampledHold struct {
	id      string
	hold    held
	lock    *rlock.Hold      // it, of a lock
	permits *rsemaphore.Hold // it, of permits with ids
	reads   bool             // is a reader's
	field   string           // its owner as the lock's hash has it
	lease   time.Duration

	// Of the sampler, guarded by the sampler's mu.
	last, until history.Time // the last sample
	wroteAt     history.Time
	wrote       history.Time
}

// sampler samples the live holds.
type sampler struct {
	log  *history.Writer
	quit chan struct{}
	done chan struct{}

	mu    sync.Mutex // guards what follows, and the samples of holds
	holds map[*sampledHold]struct{}
}

func openSampler(log *history.Writer) *sampler {
	s := &sampler{log: log, quit: make(chan struct{}), done: make(chan struct{}), holds: map[*sampledHold]struct{}{}}
	go s.run()
	return s
}

func (s *sampler) close() {
	close(s.quit)
	<-s.done
}

func (s *sampler) run() {
	defer close(s.done)
	tick := time.NewTicker(samplePause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.sampleAll()
		case <-s.quit:
			return
		}
	}
}

// add begins to sample a hold.
func (s *sampler) add(h *sampledHold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[h] = struct{}{}
	s.sample(h)
}

// remove ends it: the hold is about to be given up.
func (s *sampler) remove(h *sampledHold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
}

func (s *sampler) sampleAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.holds {
		s.sample(h)
	}
}

// sample is called with b.mu held. The order matters: the time comes first, so that
// what is written is never more than the hold says.
func (s *sampler) sample(h *sampledHold) {
	at := history.Now()
	err := h.hold.Err()
	if err != nil {
		s.log.Write(history.Record{Kind: history.Over, Hold: h.id, Until: h.last, Err: Class(err)})
		delete(s.holds, h)
		return
	}
	until := at + h.hold.Remaining()
	h.last, h.until = at, max(h.until, until)
	if h.until > h.wrote+minMove || at > h.wroteAt+staleness {
		s.log.Write(history.Record{T: at, Kind: history.Valid, Hold: h.id, Until: h.until})
		h.wrote, h.wroteAt = h.until, at
	}
}
