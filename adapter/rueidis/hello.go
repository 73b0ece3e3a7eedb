package rueidis

import (
	"sync"

	"github.com/redlatch/redlatch/internal/sentinel"
)

// claims are what the Sentinels have said. It is the pubsub.Sink that hears them.
type claims struct {
	wake chan struct{}

	mu     sync.Mutex // guards what follows
	last   sentinel.Said
	turned string // the master that was named in place of another, "" if none was
	err    error
	warned bool
}

// Acked is part of pubsub.Sink.
func (*claims) Acked(bool) {}

// Message is part of pubsub.Sink.
func (cs *claims) Message(payload string) {
	c, ok := sentinel.Parse(payload)
	if !ok {
		return
	}
	cs.mu.Lock()
	if cs.last == nil {
		cs.last = sentinel.Said{}
	}
	_, switched := cs.last.Take(c)
	if switched {
		cs.turned = c.Addr
	}
	cs.mu.Unlock()
	if switched {
		cs.rouse()
	}
}

// Failed is part of pubsub.Sink.
func (cs *claims) Failed(err error) {
	cs.mu.Lock()
	cs.err = err
	cs.mu.Unlock()
	cs.rouse()
}

func (cs *claims) rouse() {
	select {
	case cs.wake <- struct{}{}:
	default:
	}
}

// failure returns why nothing is heard any more, once.
func (cs *claims) failure() error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	err := cs.err
	cs.err = nil
	return err
}

// switched returns the master that was named last in place of another, "" if none was.
func (cs *claims) switched() string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.turned
}

// settle drops who was named.
func (cs *claims) settle() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.turned = ""
}

// forget drops all that was said.
func (cs *claims) forget() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.last, cs.turned = nil, ""
}

// told reports whether nobody was told before.
func (cs *claims) told() bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	news := !cs.warned
	cs.warned = true
	return news
}
