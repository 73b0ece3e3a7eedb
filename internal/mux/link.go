package mux

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

// link is one connection. It is used until retire, and ends with fail.
type link struct {
	conn   redis.Conn
	below  *respconn.Guarded // below conn; nil if callers cannot read
	who    identity
	born   time.Time
	flight inflight
	heard  atomic.Int64 // age at the latest reply

	once  sync.Once
	cause error         // set before dead is closed
	dead  chan struct{} // closed by fail

	last sync.Once
	full chan struct{} // closed by retire or fail: nothing more is written
	news chan struct{} // cap 1: a reply arrived on a retired link

	readerDone chan struct{} // closed when the reader has ended
	answered   bool          // guarded by the read token, until readerDone

	// Guarded by the read token.
	watched <-chan struct{} // Done of the context that runs ended
	stop    func() bool     // unregisters ended
	ended   func()          // bound once, to save allocations
}

// newLink calls more when there is room for calls in flight again.
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

// own takes over the waiting for replies from the client library, if possible, so that callers can read. No reply may
// be outstanding.
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

func (l *link) age() time.Duration { return time.Since(l.born) }

// fail closes the connection, which ends reads and writes. The first cause stays.
func (l *link) fail(cause error) {
	l.once.Do(func() {
		l.cause = cause
		close(l.dead)
		l.retire()
		_ = l.conn.Close()
	})
}

func (l *link) failed() bool { return isClosed(l.dead) }

// retire stops writes; calls in flight are still answered.
func (l *link) retire() { l.last.Do(func() { close(l.full) }) }

func (l *link) retired() bool { return isClosed(l.full) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// drain waits until all calls in flight are answered or the link fails. The writer has stopped.
func (l *link) drain() {
	for l.flight.len() > 0 {
		select {
		case <-l.news:
		case <-l.dead:
			return
		}
	}
}

func (l *link) tell() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// looks is how often Gone is called within ReplyLimit.
const looks = 6

// guard fails the link when the oldest call has waited for limit and no other call was answered in that time, or when
// the Mux is closed. A server that still replies, if late, is alive. guard is the only timer for all calls: it sleeps
// until the oldest call could be due. If gone is not nil, it is called on the way.
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

// waited returns how long the oldest call, if any, has waited without a reply to any call.
func (l *link) waited() time.Duration {
	at, ok := l.flight.oldest()
	if !ok {
		return 0
	}
	return max(0, l.age()-max(at, time.Duration(l.heard.Load())))
}

type identity struct {
	id   int64 // CLIENT ID, 0 if unknown
	name int64 // see transport.Call.Conn
	addr string

	noID, noAddr string // the server's error if denied
}

// historySize is the number of connections remembered. Later, a call in doubt cannot be fenced.
const historySize = 64

type history struct {
	mu          sync.Mutex
	current     *link      // nil while disconnected
	past        []identity // includes the current one
	reconnected chan struct{}
	lost        chan struct{}
}

// enter makes l the current connection and reports whether it had predecessors.
func (r *history) enter(l *link) (again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = l
	again = len(r.past) > 0
	if len(r.past) == historySize {
		r.past = slices.Delete(r.past, 0, 1)
	}
	r.past = append(r.past, l.who)
	if again {
		close(r.reconnected)
		r.reconnected = make(chan struct{})
	}
	return again
}

func (r *history) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = nil
	close(r.lost)
	r.lost = make(chan struct{})
}

func (r *history) present() *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

func (r *history) nextLost() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

func (r *history) nextReconnected() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reconnected
}

func (r *history) latest() identity {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.past) == 0 {
		return identity{}
	}
	return r.past[len(r.past)-1]
}

// find returns the newest connection called name, and whether it works.
func (r *history) find(name int64) (who identity, live, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.current; c != nil && c.who.name == name && !c.failed() {
		return c.who, true, true
	}
	for i := len(r.past) - 1; i >= 0; i-- {
		if r.past[i].name == name {
			return r.past[i], false, true
		}
	}
	return identity{}, false, false
}
