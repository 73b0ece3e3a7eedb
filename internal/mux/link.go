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

// A link is a connection. Calls are written to it until retire is called.
type link struct {
	conn   redis.Conn
	below  *respconn.Guarded // the connection below conn; nil if callers cannot read
	who    identity
	born   time.Time
	flight inflight
	heard  atomic.Int64 // age at the latest reply

	once  sync.Once
	cause error         // set before dead is closed
	dead  chan struct{} // closed by fail

	last sync.Once
	full chan struct{} // closed by retire or fail, after which nothing is written
	news chan struct{} // cap 1; receives a value when a reply arrives on a retired link

	readerDone chan struct{} // closed when the reader has ended
	answered   bool          // guarded by the read token until readerDone is closed

	// Guarded by the read token.
	watched <-chan struct{} // ctx.Done() of the context that interrupts the caller
	stop    func() bool     // unregisters ended
	ended   func()          // flight.contextEnded, bound once to save allocations
}

// newLink returns a link that calls the function more when a full lane can accept calls again.
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

// own makes the guarded connection wait for replies in place of the client library, if possible. No replies may be
// outstanding.
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

// fail closes the connection. Only the first call has an effect.
func (l *link) fail(cause error) {
	l.once.Do(func() {
		l.cause = cause
		close(l.dead)
		l.retire()
		_ = l.conn.Close()
	})
}

func (l *link) failed() bool { return isClosed(l.dead) }

// retire stops writes. Calls in flight can still be answered.
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

// drain waits until all calls in flight are answered or the link fails. It is called after the writer has stopped.
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

// guard fails the link if the Mux is closed, or if the oldest call has been waiting for limit without a reply to any
// call. A server that replies late is considered alive. guard uses one timer for all calls, which fires when the oldest
// call could be due. Until then, it also fails the link if gone is not nil and returns true.
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

// waited returns how long the oldest call, if any, has been waiting without a reply to any call.
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

	noID, noAddr string // the server's error if the user may not run the command
}

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

// find returns the newest connection with the given name, and whether it is live.
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
