package mux

import (
	"fmt"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

// link is one connection, from its set-up to the end of its last call.
type link struct {
	conn   redis.Conn
	who    identity
	born   time.Time
	flight inflight

	once  sync.Once
	cause error         // why it was given up; set before dead is closed
	dead  chan struct{} // closed when it is given up

	readerDone chan struct{} // closed when the reader has ended
	answered   bool          // it has answered a call; the reader's until readerDone
}

func newLink(conn redis.Conn, who identity) *link {
	return &link{
		conn:       conn,
		who:        who,
		born:       time.Now(),
		dead:       make(chan struct{}),
		readerDone: make(chan struct{}),
	}
}

// age is the link's clock.
func (l *link) age() time.Duration { return time.Since(l.born) }

// fail gives the connection up, which also ends a read or a write on it. The
// first cause stays.
func (l *link) fail(cause error) {
	l.once.Do(func() {
		l.cause = cause
		close(l.dead)
		// It is of no use any more, whatever Close says.
		_ = l.conn.Close()
	})
}

func (l *link) failed() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

// guard gives the connection up when its oldest call has waited for limit, or
// when the Mux is closed. It is the only timer of all calls: after each look it
// sleeps until the oldest call of that moment, or one put in flight later, could
// be due.
func (l *link) guard(closed <-chan struct{}, limit time.Duration) {
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		select {
		case <-l.dead:
			return
		case <-closed:
			l.fail(transport.ErrClosed)
			return
		case <-t.C:
		}
		left := limit
		if at, ok := l.flight.oldest(); ok {
			left = at + limit - l.age()
		}
		if left <= 0 {
			l.fail(fmt.Errorf("no reply within %v", limit))
			return
		}
		t.Reset(left)
	}
}
