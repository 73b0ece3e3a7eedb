package failover

import (
	"sync"

	"github.com/redlatch/redlatch/internal/sentinel"
	"github.com/redlatch/redlatch/pubsub"
)

// ear hears what Sentinels say. No message may be dropped here: the one that tells of a
// switch comes among others, and is not said again for two seconds.
type ear struct {
	wake chan struct{} // cap 1: there is news

	mu   sync.Mutex // guards what follows
	said sentinel.Said
	news news
}

// news is what was heard since the last check.
type news struct {
	heard    bool   // anything
	first    string // the address of the master that was named for the first time
	switched string // the address of the master that was named instead of another
	failed   error  // nothing will be heard any more
}

var _ pubsub.Sink = (*ear)(nil)

func newEar() *ear { return &ear{wake: make(chan struct{}, 1), said: sentinel.Said{}} }

// take returns what is new.
func (e *ear) take() news {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.news
	e.news = news{}
	return n
}

func (e *ear) note(f func(n *news)) {
	e.mu.Lock()
	f(&e.news)
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default: // a check is due already
	}
}

// Acked is part of pubsub.Sink.
func (*ear) Acked(bool) {}

// Message is part of pubsub.Sink.
func (e *ear) Message(payload string) {
	c, ok := sentinel.Parse(payload)
	if !ok {
		return
	}
	e.note(func(n *news) {
		n.heard = true
		switch first, switched := e.said.Take(c); {
		case first:
			n.first = c.Addr
		case switched:
			n.switched = c.Addr
		}
	})
}

// Failed is part of pubsub.Sink.
func (e *ear) Failed(err error) { e.note(func(n *news) { n.failed = err }) }
