package mux

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

// link is one connection, from its set-up to the end of its last call.
type link struct {
	conn   redis.Conn
	below  *respconn.Guarded // below conn; nil: callers cannot read
	who    identity
	born   time.Time
	flight inflight
	heard  atomic.Int64 // when the latest reply came, on the link's clock

	once  sync.Once
	cause error         // why it was given up; set before dead is closed
	dead  chan struct{} // closed when it is given up

	last sync.Once
	full chan struct{} // closed when nothing more is to be written: it is dead, or retired
	news chan struct{} // cap 1: a reply has come to a link that is retired

	readerDone chan struct{} // closed when the reader has ended
	answered   bool          // it has answered a call; guarded by the read token, until readerDone

	// Guarded by the read token.
	watched <-chan struct{} // the end of the context that ended is registered with
	stop    func() bool     // ends that
	ended   func()          // bound once: a method value costs an allocation
}

// newLink makes a link of conn. More is called when, after a burst, there is room for
// calls in flight again.
func newLink(conn redis.Conn, who identity, more func()) *link {
	l := &link{
		conn:       conn,
		who:        who,
		flight:     inflight{more: more, readToken: readToken{with: withReader, turn: make(chan struct{}, 1)}},
		born:       time.Now(),
		dead:       make(chan struct{}),
		full:       make(chan struct{}),
		news:       make(chan struct{}, 1),
		readerDone: make(chan struct{}),
	}
	l.ended = l.flight.contextEnded
	return l
}

// own takes the reading of l from the client library, if that is possible, so that callers
// can read. Each command so far was answered.
func (l *link) own() error {
	below := respconn.Below(l.conn)
	if below == nil {
		return nil
	}
	ok, err := below.Own()
	if ok && err == nil {
		l.below, l.flight.conn, l.flight.with = below, below, withNone
	}
	return err
}

// age is the link's clock.
func (l *link) age() time.Duration { return time.Since(l.born) }

// fail gives the connection up, which also ends a read or a write on it. The
// first cause stays.
func (l *link) fail(cause error) {
	l.once.Do(func() {
		l.cause = cause
		close(l.dead)
		l.retire()
		// It is of no use any more, whatever Close says.
		_ = l.conn.Close()
	})
}

func (l *link) failed() bool { return isClosed(l.dead) }

// retire lets the calls in flight be answered, and takes no more.
func (l *link) retire() { l.last.Do(func() { close(l.full) }) }

// retired reports whether nothing more is to be written.
func (l *link) retired() bool { return isClosed(l.full) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// drain waits until all calls in flight are answered, or the link is given up. The
// writer has stopped.
func (l *link) drain() {
	for l.flight.len() > 0 {
		select {
		case <-l.news:
		case <-l.dead:
			return
		}
	}
}

// tell lets drain look again.
func (l *link) tell() {
	select {
	case l.news <- struct{}{}:
	default: // it will look anyway
	}
}

// looks is how often, while the oldest call waits for the limit, it is asked whether that
// is still worth it.
const looks = 6

// guard gives the connection up when its oldest call has waited for limit, and no
// reply has come to any call for so long, or when the Mux is closed: a server that
// answers late is not dead, and another connection to it would not be faster. It is
// the only timer of all calls: after each look it sleeps until the oldest call of that
// moment, or one put in flight later, could be due. Gone, if not nil, is asked on the
// way whether the server is of no use anyway.
func (l *link) guard(closed <-chan struct{}, limit time.Duration, gone func() bool) {
	step := limit
	if gone != nil {
		step = limit / looks
	}
	t := time.NewTimer(step)
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
		waited := l.waited()
		if waited >= limit {
			l.fail(fmt.Errorf("no reply within %v", limit))
			return
		}
		if waited >= step && gone() {
			l.fail(fmt.Errorf("no reply within %v, and the server has been replaced", waited.Round(time.Millisecond)))
			return
		}
		t.Reset(min(limit-waited, step-waited%step))
	}
}

// waited returns for how long the oldest call has waited while no reply came, 0 when there
// is none.
func (l *link) waited() time.Duration {
	at, ok := l.flight.oldest()
	if !ok {
		return 0
	}
	return max(0, l.age()-max(at, time.Duration(l.heard.Load())))
}
