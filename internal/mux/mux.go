package mux

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/transport"
)

// errClosedNotSent is what a call that Close found unsent ends with.
var errClosedNotSent = fmt.Errorf("%w: %w", transport.ErrNotSent, transport.ErrClosed)

// Mux runs calls over one connection at a time. All methods are safe for
// concurrent use.
type Mux struct {
	cfg     Config
	queue   queue
	history history
	late    lateRunner
	denied  atomic.Pointer[error] // why the server does not let us kill connections
	noAddr  sync.Once             // tells that connections are killed by their id alone

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // every goroutine of the Mux

	// Owned by the run goroutine.
	backoff  clock.Backoff
	moved    bool // the last connection's server had become a replica
	notified bool // of that
	writer   writer
}

// New returns a Mux. It does no I/O and starts nothing: the first call makes it
// dial. It panics when cfg has no Dial.
func New(cfg Config) *Mux {
	m := &Mux{cfg: cfg.withDefaults()}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.queue.init()
	m.history.init()
	m.late.wg = &m.wg
	m.backoff = clock.Backoff{Min: m.cfg.BackoffMin, Max: m.cfg.BackoffMax}
	return m
}

// Start queues call and returns at once. done runs exactly once, with a reply or
// an error of package transport's contract, on a goroutine of the Mux, or on the
// caller's before Start returns when the Mux is closed. It must not wait for
// anything, and so not call Close either.
//
// A call withdrawn with Abandon ends when the Mux comes to it: with a connection
// that takes what is written to it that is at once; without one it is when the
// dial under way or the next one has ended, so within DialTimeout + BackoffMax;
// behind a server that takes nothing it can be ReplyLimit later.
func (m *Mux) Start(call *transport.Call, done transport.Done) {
	first, ok := m.queue.push(entry{call: call, done: done}, &m.wg)
	switch {
	case !ok:
		done(nil, errClosedNotSent)
	case first:
		go m.run()
	}
}

// Reconnected returns a channel that is closed when the next connection after
// the first one has been made. Ask again for the one after. Close does not close
// it.
func (m *Mux) Reconnected() <-chan struct{} { return m.history.next() }

// Lost returns a channel that is closed when a connection has ended, for whatever
// reason. Ask again for the one after. The Mux makes another with the next call.
func (m *Mux) Lost() <-chan struct{} { return m.history.nextLost() }

// Close ends the connection and waits until nothing of the Mux runs any more.
// Calls in flight end with transport.ErrUncertain, queued ones with
// transport.ErrNotSent, both together with transport.ErrClosed. It always returns
// nil and may be called more than once, but not from a done.
func (m *Mux) Close() error {
	m.queue.close()
	m.cancel()
	m.wg.Wait()
	return nil
}

// finish ends a call. The done of an abandoned one may be slow, since it starts
// the clearing-up after a caller that left, so it goes to the late runner. The
// call must not be touched afterwards.
func (m *Mux) finish(e entry, reply any, err error) {
	if e.call.Abandoned() {
		m.late.do(func() { e.done(reply, err) })
		return
	}
	e.done(reply, err)
}

// lateRunner runs functions one after the other on a goroutine that exists while
// there are any. Only goroutines that wg counts may hand it one, and a caller that has
// the read token, whose reader wg counts: then wg does not pass zero in between.
type lateRunner struct {
	wg *sync.WaitGroup

	mu    sync.Mutex // guards what follows; not held while a function runs
	funcs []func()
	runs  bool
}

func (r *lateRunner) do(f func()) {
	r.mu.Lock()
	r.funcs = append(r.funcs, f)
	start := !r.runs
	r.runs = true
	r.mu.Unlock()
	if start {
		r.wg.Go(r.run)
	}
}

func (r *lateRunner) run() {
	for {
		r.mu.Lock()
		fs := r.funcs
		r.funcs = nil
		r.runs = len(fs) > 0
		r.mu.Unlock()
		if len(fs) == 0 {
			return
		}
		for _, f := range fs {
			f()
		}
	}
}

// Redirect is Start for a call that another server of a cluster has refused and sent
// here, so that it has not run. With asking, ASKING is sent directly
// before the call: the server does not own the call's slot yet. When the caller has left,
// the call is not sent, and ends with transport.ErrNotSent.
func (m *Mux) Redirect(call *transport.Call, done transport.Done, asking bool) {
	e := entry{call: call, done: done, redirected: true, asking: asking}
	switch first, ok := m.queue.push(e, &m.wg); {
	case !ok:
		done(nil, errClosedNotSent)
	case first:
		go m.run()
	}
}

// ask writes ASKING and puts it in flight, as a call that no caller waits for: if
// the server refuses it, it refuses the call, too. It returns false when the link
// broke.
func (w *writer) ask(l *link, now time.Duration) bool {
	asking := &transport.Call{Command: "ASKING"}
	l.flight.push(entry{call: asking, done: func(any, error) {}, at: now})
	w.unflushed++
	if err := l.conn.Send(asking.Command); err != nil {
		l.fail(err)
		return false
	}
	return true
}
