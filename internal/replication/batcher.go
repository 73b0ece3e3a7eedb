// Package replication runs calls and waits until replicas have acknowledged their writes. WAIT counts acknowledgments
// only for the writes of its own connection, and it blocks later commands there. So a [Batcher] uses a connection only
// for calls and WAIT. While one batch is waiting, new calls are collected for the next one, in which they share one
// WAIT. The time in the queue counts toward a call's timeout. If the connection breaks or another connection to the
// master has been replaced, calls are sent again, so they must be idempotent. One goroutine does the I/O and calls the
// done callbacks, without holding a mutex.
package replication

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

const (
	batchMax = 1024
	idleTime = time.Minute
)

var (
	errClosed   = fmt.Errorf("%w: %w", transport.ErrNotSent, transport.ErrClosed)
	errReplaced = errors.New("the connection to the master was replaced")
)

// Config configures a [Batcher]. All fields except Replaced are required.
type Config struct {
	// Dial opens a connection that only the Batcher uses. It must respect ctx and return a redis.ConnWithTimeout.
	Dial        func(ctx context.Context) (redis.Conn, error)
	DialTimeout time.Duration
	// Command is how long the server may take in addition to the wait for replicas.
	Command time.Duration
	// Replaced, if not nil, returns a channel that is closed when another connection to the master has been replaced.
	// The Batcher then replaces its own connection as well, because acknowledgments from a former master's replicas do
	// not count.
	Replaced func() <-chan struct{}
}

// Batcher runs calls and waits for replicas. It is safe for concurrent use.
type Batcher struct {
	cfg    Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	wake   chan struct{} // cap 1; receives a value when there are calls

	mu      sync.Mutex
	queue   []*request
	started bool
	closed  bool

	// Owned by the run goroutine.
	link     *link
	replaced <-chan struct{}
	pause    clock.Backoff // after a failed dial or a useless connection
}

// New returns a Batcher, which connects when it is first used.
func New(cfg Config) *Batcher {
	b := &Batcher{cfg: cfg, wake: make(chan struct{}, 1)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// Replicate implements transport.Replicator. done runs on the Batcher's goroutine, or on the caller's if the Batcher
// is closed. If asking is true, ASKING is sent before the call, because the node does not own the slot yet.
func (b *Batcher) Replicate(call *transport.Call, replicas int, timeout time.Duration, done func(any, int64, error), asking bool) {
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
	if !b.started {
		b.started = true
		b.wg.Go(b.run) // under mu, so that Close waits for it
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Close ends all calls and waits for the goroutine. It must not be called from a done callback.
func (b *Batcher) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.wg.Wait()
}

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
		b.end(batch, transport.ErrClosed)
	}
}

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

func (b *Batcher) serve(batch []*request) {
	var lost error
	for len(batch) > 0 {
		fresh, err := b.connect()
		if err != nil {
			b.end(batch, err)
			return
		}
		left, v, err := b.link.exchange(withdraw(batch, lost), b.cfg.Command)
		switch {
		case err == nil && b.outdated():
			b.hangUp()
			batch, lost = unproven(left), errReplaced
		case err == nil:
			batch = settle(left, v)
			b.judge()
		default:
			b.hangUp()
			switch {
			case errors.Is(err, errFull):
				notRun(left)
			case !fresh && b.ctx.Err() == nil:
				batch, lost = left, err
				continue
			}
			b.pause.Failed()
			b.end(left, err)
			return
		}
	}
}

func (b *Batcher) end(batch []*request, err error) {
	if b.ctx.Err() != nil {
		err = transport.ErrClosed
	}
	for _, r := range batch {
		class := transport.ErrNotSent
		if r.sent > 0 {
			class = transport.ErrUncertain
		}
		r.done(nil, 0, fmt.Errorf("%w: %w", class, err))
	}
}

func (b *Batcher) outdated() bool {
	select {
	case <-b.replaced:
		return true
	default:
		return false
	}
}

func (b *Batcher) judge() {
	if b.link.readOnly {
		b.hangUp()
		b.pause.Failed()
		return
	}
	b.pause.Reset()
}

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
		b.replaced = b.cfg.Replaced() // before the dial, so that no replacement is missed
	}
	ctx, cancel := context.WithTimeout(b.ctx, b.cfg.DialTimeout)
	defer cancel()
	conn, err := respconn.Timed(b.cfg.Dial(ctx))
	if err != nil {
		b.pause.Failed()
		return false, err
	}
	b.link = newLink(b.ctx, conn)
	return true, nil
}

func (b *Batcher) hangUp() {
	if b.link != nil {
		b.link.close()
		b.link = nil
	}
}
