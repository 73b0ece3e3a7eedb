package failover

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/sentinel"
	"github.com/redlatch/redlatch/pubsub"
)

// helloListener receives the hello messages of Sentinels. No message may be dropped
// here: the one that reports a switch comes among others, and is not repeated for two
// seconds.
type helloListener struct {
	wake chan struct{} // cap 1: there is news

	mu   sync.Mutex // guards what follows
	said sentinel.Said
	news news
}

// news is what was received since the last check.
type news struct {
	received bool   // anything
	first    string // the address of the master that was named for the first time, or anew
	switched string // the address of the master that was named instead of another
	failed   error  // nothing will be received any more
}

var _ pubsub.Sink = (*helloListener)(nil)

func newHelloListener() *helloListener {
	return &helloListener{wake: make(chan struct{}, 1), said: sentinel.Said{}}
}

// take returns what is new.
func (l *helloListener) take() news {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.news
	l.news = news{}
	return n
}

func (l *helloListener) note(f func(n *news)) {
	l.mu.Lock()
	f(&l.news)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // a check is due already
	}
}

// Acked is part of pubsub.Sink.
func (*helloListener) Acked(bool) {}

// Message is part of pubsub.Sink.
func (l *helloListener) Message(payload string) {
	c, ok := sentinel.Parse(payload)
	if !ok {
		return
	}
	l.note(func(n *news) {
		n.received = true
		switch first, switched := l.said.Take(c, time.Now()); {
		case first:
			n.first = c.Addr
		case switched:
			n.switched = c.Addr
		}
	})
}

// Failed is part of pubsub.Sink.
func (l *helloListener) Failed(err error) { l.note(func(n *news) { n.failed = err }) }
