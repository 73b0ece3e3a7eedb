// Package mux implements a transport to one Redis server. Any number of callers share one connection through a queue,
// a writer and a reader. If the connection is unused when a caller calls Lead, the caller does the I/O itself; see
// [readToken]. When the connection breaks, calls in flight end with ErrUncertain, and queued calls wait for the next
// connection. If a dial fails, queued calls end with ErrNotSent. No mutex is held during I/O or while a done callback
// runs.
package mux

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/transport"
)

var errClosedNotSent = fmt.Errorf("%w: %w", transport.ErrNotSent, transport.ErrClosed)

// Config configures a [Mux]. Only Dial is required.
type Config struct {
	// Dial opens a connection that only the Mux uses, with TLS, authentication and the database set up. The connection
	// must implement redis.ConnWithTimeout. If Dial ignores ctx, Close waits until it returns.
	Dial func(ctx context.Context) (redis.Conn, error)

	// ReplyLimit is how long the oldest call may wait without a reply to any call before the connection is closed. It
	// must exceed the run time of the slowest script. The default is 10 s.
	ReplyLimit time.Duration

	// DialTimeout limits a dial and the first commands on the connection. The default is 5 s.
	DialTimeout time.Duration

	// Tag is combined with the connection IDs in transport.Call.Conn to distinguish the servers of a cluster. It must
	// be unique for each Mux and use only bits above the 36th.
	Tag int64

	Logger *slog.Logger

	// OnReconnect, if not nil, is called whenever a connection has replaced an earlier one, on the goroutine that
	// handles late replies. It must not block, but it may start calls.
	OnReconnect func()

	// Gone, if not nil, reports whether the server has been replaced, in which case the connection is closed. It is
	// called six times per ReplyLimit during a dial or a wait for a reply, and must not block.
	Gone func() bool

	// OnLost, if not nil, is called like OnReconnect when a connection has ended for any reason other than Close.
	OnLost func()

	// OnMoved, if not nil, is called like OnReconnect when a connection has replaced one to a server that had become a
	// replica.
	OnMoved func()
}

func (c Config) withDefaults() Config {
	if c.Dial == nil {
		panic("mux: Config.Dial is nil")
	}
	c.ReplyLimit = cmp.Or(c.ReplyLimit, 10*time.Second)
	c.DialTimeout = cmp.Or(c.DialTimeout, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Mux runs calls over one connection at a time. It is safe for concurrent use.
type Mux struct {
	cfg     Config
	queue   queue
	history history
	late    lateRunner
	denied  atomic.Pointer[error] // why connections cannot be killed
	noAddr  sync.Once

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	// Owned by the run goroutine.
	backoff  clock.Backoff
	moved    bool // the last server had become a replica
	notified bool
	writer   writer
}

// New returns a Mux that dials at the first call.
func New(cfg Config) *Mux {
	m := &Mux{cfg: cfg.withDefaults()}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.queue.wake = make(chan struct{}, 1)
	m.history.reconnected, m.history.lost = make(chan struct{}), make(chan struct{})
	m.late.wg = &m.wg
	return m
}

// Start queues call and returns immediately. done is called exactly once, with a reply or an error that package
// transport allows. It is called on a goroutine of the Mux, or on the caller's goroutine if the Mux is closed. It must
// not block, and must not call Close.
//
// An abandoned call ends when the Mux would have written it. That is after the current or next dial, or up to
// ReplyLimit later if the server has stopped reading.
func (m *Mux) Start(call *transport.Call, done transport.Done) {
	m.start(entry{call: call, done: done})
}

// Ask is like Start, but sends ASKING before the call.
func (m *Mux) Ask(call *transport.Call, done transport.Done) {
	m.start(entry{call: call, done: done, asking: true})
}

func (m *Mux) start(e entry) {
	switch first, ok := m.queue.push(e, &m.wg); {
	case !ok:
		e.done(nil, errClosedNotSent)
	case first:
		go m.run()
	}
}

// Reconnected returns a channel that is closed when the next connection has replaced an earlier one. Close doesn't
// close the channel.
func (m *Mux) Reconnected() <-chan struct{} { return m.history.nextReconnected() }

// Lost returns a channel that is closed when a connection ends.
func (m *Mux) Lost() <-chan struct{} { return m.history.nextLost() }

// Close closes the connection and waits for all goroutines. Calls in flight end with transport.ErrUncertain and queued
// calls with transport.ErrNotSent; both errors also wrap transport.ErrClosed. Close must not be called from a done
// callback.
func (m *Mux) Close() error {
	m.queue.close()
	m.cancel()
	m.wg.Wait()
	return nil
}

// finish ends a call, which must not be used afterward. If the call was abandoned, the late runner calls done, because
// that may be slow.
func (m *Mux) finish(e entry, reply any, err error) {
	if e.call.Abandoned() {
		m.late.do(func() { e.done(reply, err) })
		return
	}
	e.done(reply, err)
}

// lateRunner runs functions in order, on a goroutine that exists while there are any. So that wg doesn't reach zero
// early, only goroutines counted in wg may call do, and callers that hold the read token, for which the reader is
// waiting.
type lateRunner struct {
	wg *sync.WaitGroup

	mu      sync.Mutex // not held while a function runs
	funcs   []func()
	running bool
}

// do runs f, which may be nil.
func (r *lateRunner) do(f func()) {
	if f == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.funcs = append(r.funcs, f)
	if !r.running {
		r.running = true
		r.wg.Go(r.run)
	}
}

func (r *lateRunner) run() {
	for {
		r.mu.Lock()
		fs := r.funcs
		r.funcs = nil
		r.running = len(fs) > 0
		r.mu.Unlock()
		if len(fs) == 0 {
			return
		}
		for _, f := range fs {
			f()
		}
	}
}
