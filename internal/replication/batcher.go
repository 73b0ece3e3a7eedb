package replication

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/transport"
)

const (
	// batchMax is how many calls share one WAIT at most.
	batchMax = 1024
	// idleTime is how long the connection is kept without use.
	idleTime = time.Minute
)

var errClosed = fmt.Errorf("%w: %w", transport.ErrNotSent, transport.ErrClosed)

// Config says how a [Batcher] reaches the master. All but Replaced is required.
type Config struct {
	// Dial opens a connection that the Batcher alone will use and close. It must
	// honour ctx and support redis.ConnWithTimeout.
	Dial func(ctx context.Context) (redis.Conn, error)
	// DialTimeout bounds one dial.
	DialTimeout time.Duration
	// Command is how long the server may take to answer besides the time that it waits for
	// replicas.
	Command time.Duration
	// Replaced returns a channel that is closed when another connection to the master
	// is made in place of a lost one: then this one is made anew, too, since the
	// address may lead elsewhere by now. Nil: never.
	Replaced func() <-chan struct{}
}

// Batcher runs calls and waits for replicas, many at a time. All methods are safe for
// concurrent use.
type Batcher struct {
	cfg    Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	wake   chan struct{} // cap 1: there are calls

	mu      sync.Mutex // guards what follows
	queue   []*request
	started bool
	closed  bool

	// Owned by the run goroutine.
	link     *link // nil: there is no connection
	replaced <-chan struct{}
	pause    clock.Backoff // after a connection that was good for nothing
}

// New returns a Batcher. It does no I/O and starts nothing.
func New(cfg Config) *Batcher {
	b := &Batcher{cfg: cfg, wake: make(chan struct{}, 1)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// Replicate is that of transport.Replicator. done runs on the Batcher's goroutine, or
// on the caller's when the Batcher is closed.
func (b *Batcher) Replicate(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
	b.add(&request{call: call, replicas: replicas, until: time.Now().Add(timeout), done: done})
}

// Redirect is Replicate for a call that another server of a cluster has refused and
// sent here, so that it has not run. With asking, ASKING is sent directly
// before the call: the server does not own the call's slot yet. When the caller has left, the
// call is not sent, and ends with transport.ErrNotSent.
func (b *Batcher) Redirect(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated, asking bool) {
	b.add(&request{call: call, replicas: replicas, until: time.Now().Add(timeout), done: done, asking: asking})
}

func (b *Batcher) add(r *request) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		r.done(nil, 0, errClosed)
		return
	}
	b.queue = append(b.queue, r)
	b.begin()
	b.mu.Unlock()
}

// begin has run look at the queue, mu held: a Close that follows waits for it.
func (b *Batcher) begin() {
	if !b.started {
		b.started = true
		b.wg.Go(b.run)
	}
	select {
	case b.wake <- struct{}{}:
	default: // it is awake
	}
}

// Close ends the connection and all calls, and returns when nothing of the Batcher runs
// any more. It may be called more than once, but not from a done.
func (b *Batcher) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.wg.Wait()
}

// run serves one batch after the other until Close.
func (b *Batcher) run() {
	defer b.hangUp()
	idle := time.NewTimer(idleTime)
	defer idle.Stop()
	for b.ctx.Err() == nil {
		if batch := b.take(); len(batch) > 0 {
			b.serve(batch)
			idle.Reset(idleTime)
			continue
		}
		select {
		case <-b.wake:
		case <-idle.C:
			b.hangUp()
		case <-b.ctx.Done():
		}
	}
	for batch := b.take(); len(batch) > 0; batch = b.take() {
		endAll(batch, errClosed)
	}
}

// take returns the calls that are sent next, in the order in which they came.
func (b *Batcher) take() []*request {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.queue), batchMax)
	batch := b.queue[:n:n]
	if b.queue = b.queue[n:]; len(b.queue) == 0 {
		b.queue = nil
	}
	return batch
}

// serve sends calls until each has ended. A connection that broke may have been of no
// use for long: then they are sent once more, on a new one. So they are when the
// client's other connection was replaced meanwhile: what replicas of a former master
// have is no promise.
func (b *Batcher) serve(batch []*request) {
	for len(batch) > 0 {
		fresh, err := b.connect()
		if err != nil {
			endUnsent(batch, err)
			return
		}
		left, v, err := b.link.exchange(withdraw(batch), b.cfg.Command)
		switch {
		case err == nil && b.outdated():
			b.hangUp()
			batch = unproven(left)
		case err == nil:
			batch = settle(left, v)
			b.judge()
		case errors.Is(err, errFull):
			b.hangUp()
			b.pause.Failed()
			notRun(left, err)
			return
		case fresh || b.ctx.Err() != nil:
			b.hangUp()
			b.pause.Failed()
			endAll(left, uncertain(b.ctx, err))
			return
		default:
			b.hangUp()
			batch = left
		}
	}
}

// outdated reports whether another connection to the master was made in place of a lost
// one since this one was.
func (b *Batcher) outdated() bool {
	select {
	case <-b.replaced:
		return true
	default:
		return false
	}
}

// judge draws the conclusions from an exchange that was answered.
func (b *Batcher) judge() {
	if b.link.readOnly {
		b.hangUp()
		b.pause.Failed()
		return
	}
	b.pause.Reset()
}

func uncertain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = transport.ErrClosed
	}
	return fmt.Errorf("%w: %w", transport.ErrUncertain, err)
}

// connect sees to it that there is a connection, and reports whether it was made just
// now.
func (b *Batcher) connect() (fresh bool, err error) {
	if b.outdated() {
		b.hangUp()
	}
	if b.link != nil {
		return false, nil
	}
	if !b.pause.Wait(b.ctx) {
		return false, transport.ErrClosed
	}
	if b.cfg.Replaced != nil {
		b.replaced = b.cfg.Replaced() // before the dial: what is replaced after it counts
	}
	ctx, cancel := context.WithTimeout(b.ctx, b.cfg.DialTimeout)
	defer cancel()
	conn, err := b.cfg.Dial(ctx)
	if err == nil {
		b.link, err = newLink(b.ctx, conn)
	}
	if err != nil {
		b.pause.Failed()
		if b.ctx.Err() != nil {
			err = transport.ErrClosed
		}
		return false, err
	}
	return true, nil
}

// hangUp ends the connection, if there is one.
func (b *Batcher) hangUp() {
	if b.link != nil {
		b.link.close()
		b.link = nil
	}
}

var errNoTimeouts = errors.New("the dialled connection does not support redis.ConnWithTimeout")
