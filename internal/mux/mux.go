// Package mux is a transport for calls to one Redis server: any number of callers share one connection, through a
// queue, a writer and a reader. A caller of Lead that finds the connection unused does the I/O itself; see [readToken].
// When the connection breaks, calls in flight end with ErrUncertain and queued calls wait for the next one; when a dial
// fails, these end with ErrNotSent. No mutex is held across I/O or while a done callback runs.
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
	// Dial opens a connection for the Mux alone, with TLS, credentials and database set. It must support
	// redis.ConnWithTimeout and needs no timeouts. If Dial ignores ctx, only Close waits for it.
	Dial func(ctx context.Context) (redis.Conn, error)

	// ReplyLimit is how long the oldest call may be unanswered, with no reply to any other, before the connection is
	// closed. It must exceed the slowest script. Default 10 s.
	ReplyLimit time.Duration

	// DialTimeout bounds one dial and its first commands. Default 5 s.
	DialTimeout time.Duration

	// Tag is added to the connection IDs in transport.Call.Conn, to tell servers of a cluster apart: bits above the
	// 36th, unique for each Mux. Default 0.
	Tag int64

	// Logger logs lost and restored connections.
	Logger *slog.Logger

	// OnReconnect, if not nil, runs after every connection except the first, on the goroutine that handles late
	// replies. It must not block; it may start calls.
	OnReconnect func()

	// Gone, if not nil, reports whether the server has been replaced; the connection is then closed. It is called six
	// times per ReplyLimit during a dial or wait, and must not block.
	Gone func() bool

	// OnLost, if not nil, runs like OnReconnect after a connection has ended for any reason other than Close.
	OnLost func()

	// OnMoved, if not nil, runs like OnReconnect when a connection has replaced one whose server had become a replica.
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

// New returns a Mux that dials at the first call. It panics if cfg has no Dial.
func New(cfg Config) *Mux {
	m := &Mux{cfg: cfg.withDefaults()}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.queue.wake = make(chan struct{}, 1)
	m.history.reconnected, m.history.lost = make(chan struct{}), make(chan struct{})
	m.late.wg = &m.wg
	return m
}

// Start queues call and returns immediately. done runs exactly once, with a reply or an error that package transport's
// contract allows, on a goroutine of the Mux, or on the caller's if the Mux is closed. It must not block, and must not
// call Close.
//
// A call withdrawn with Abandon ends when the Mux would have written it: after the current or next dial, or up to
// ReplyLimit later if the server has stopped reading.
func (m *Mux) Start(call *transport.Call, done transport.Done) {
	m.start(entry{call: call, done: done})
}

// Ask is like Start, for a call that another node of a cluster redirected here: ASKING is sent before it.
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

// Reconnected returns a channel that is closed when the next connection has replaced an earlier one, but not by
// Close.
func (m *Mux) Reconnected() <-chan struct{} { return m.history.nextReconnected() }

// Lost returns a channel that is closed when a connection ends.
func (m *Mux) Lost() <-chan struct{} { return m.history.nextLost() }

// Close closes the connection and waits for all goroutines. Calls in flight end with transport.ErrUncertain, queued
// ones with transport.ErrNotSent, both with transport.ErrClosed. It returns nil, and must not be called from a done
// callback.
func (m *Mux) Close() error {
	m.queue.close()
	m.cancel()
	m.wg.Wait()
	return nil
}

// finish ends a call, which must not be used afterwards. The late runner calls done for an abandoned call, since that
// may be slow.
func (m *Mux) finish(e entry, reply any, err error) {
	if e.call.Abandoned() {
		m.late.do(func() { e.done(reply, err) })
		return
	}
	e.done(reply, err)
}

// lateRunner runs functions in order on a goroutine that exists while there are any. Only goroutines counted in wg may
// call do, and callers that hold the read token, because the reader that waits for the token is counted. So wg cannot
// reach zero in between.
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
