package engine

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redlatch/redlatch/transport"
)

const (
	askSoon      = 250 * time.Millisecond
	askSoonUntil = 5 * time.Second
	askLater     = time.Second
)

// InDoubt is a call that may have run or may still run, but whose effect is unwanted. It can also stand for unwanted
// state on the server that did not come from such a call.
type InDoubt struct {
	// Name and Owner identify the lock in the log.
	Name, Owner string
	// Undo removes the effect with idempotent calls, each within one command timeout, and reports whether there was an
	// effect. If nil, the call is only prevented from running.
	Undo func(run Run) (undone bool, err error)
	// Superseded, if not nil, is called before each Undo or, if Undo is nil, after each failed fence. If it returns true,
	// the doubt ends, because another caller frees the lock.
	Superseded func() bool
	// Lease is how long the effect of the call can last.
	Lease time.Duration
	// Lasts is the minimum time for which a failing Undo is retried, even if the call can no longer run.
	Lasts time.Duration
	// Done, if not nil, is called when the doubt ends; over is true if the call can no longer run.
	Done func(over bool)

	attempt *Attempt // if nil, a definite answer ends the doubt
}

// Run runs an idempotent call for at most one command timeout.
type Run func(fill func(*transport.Call)) (reply any, err error)

// Resolve resolves a call in doubt in the background.
//
// A call may still be buffered in its old connection and run after any later call on a new one. An Undo that has not
// found an effect is therefore conclusive only if the old connection was killed first. Otherwise it is repeated until
// the server has answered it for the length of one lease.
func (e *Engine) Resolve(d *InDoubt) {
	e.inDoubt.Add(1)
	if d.Undo == nil {
		if !e.Go(func() { e.endDoubt(d, e.prevent(d)) }) {
			e.endDoubt(d, false)
		}
		return
	}
	e.Join()
	if !e.Go(func() { e.resolve(d) }) {
		e.Logger.Warn("redlatch: client closed with an unresolved call: a lock or queue place may remain until it expires",
			"lock", d.Name, "owner", d.Owner)
		e.endDoubt(d, false)
		e.Leave()
	}
}

// prevent tries for one lease to make sure that the call will not run later.
func (e *Engine) prevent(d *InDoubt) (over bool) {
	for began := time.Now(); ; {
		switch {
		case e.fence(d.attempt):
			return true
		case d.Superseded != nil && d.Superseded(), time.Since(began) >= d.Lease, !e.Rest(time.Since(began)):
			return false
		}
	}
}

func (e *Engine) endDoubt(d *InDoubt, over bool) {
	e.inDoubt.Add(-1)
	if d.Done != nil {
		d.Done(over)
	}
	if d.attempt != nil {
		d.attempt.free()
	}
}

// resolve runs until the doubt is over or the client is closed. The lease counts only while the server is answering,
// because a server that becomes reachable again may still run the call.
func (e *Engine) resolve(d *InDoubt) {
	certain := d.attempt == nil
	defer e.Leave()
	defer func() { e.endDoubt(d, certain) }()
	began := time.Now()
	until := began.Add(d.Lease)
	for {
		certain = certain || e.fence(d.attempt)
		if d.Superseded != nil && d.Superseded() {
			e.Logger.Info("redlatch: unresolved call left to Unlock", "lock", d.Name, "owner", d.Owner)
			return
		}
		undone, err := d.Undo(e.run)
		switch {
		case err == nil && (undone || certain):
			e.Logger.Info("redlatch: unresolved call resolved", "lock", d.Name, "owner", d.Owner, "was_held", undone)
			return
		case err != nil && !Retryable(err):
			e.Logger.Error("redlatch: cannot resolve call: the lock may remain until its lease ends",
				"lock", d.Name, "owner", d.Owner, "error", err)
			return
		case err != nil && (!certain || time.Since(began) < d.Lasts):
			until = time.Now().Add(d.Lease)
		}
		if errors.Is(err, ErrClosed) || time.Now().After(until) || !e.Rest(time.Since(began)) {
			e.Logger.Warn("redlatch: unresolved call abandoned", "lock", d.Name, "owner", d.Owner,
				"after", time.Since(began), "error", err)
			return
		}
	}
}

// Retryable reports whether a call that failed with err may succeed later.
func Retryable(err error) bool {
	return errors.Is(err, ErrUncertain) || Passing(err) || errors.Is(err, ErrClosed)
}

func (e *Engine) run(fill func(*transport.Call)) (any, error) {
	a := e.Attempt()
	fill(&a.Call)
	return a.RunFor(e.Command, nil)
}

// Rest pauses between two attempts to resolve a call, or until a reconnect. It returns false if the client is closed.
func (e *Engine) Rest(since time.Duration) bool {
	pause := askLater
	if since < askSoonUntil {
		pause = askSoon
	}
	timer := time.NewTimer(pause + rand.N(pause/5)) //nolint:gosec // spreading load needs no secrets
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.Reconnected():
	case <-e.running.Done():
		return false
	}
	return true
}

// fence tries for one command timeout to make sure that the attempt's call will not run later.
func (e *Engine) fence(a *Attempt) bool {
	f, ok := e.Transport.(transport.Fencer)
	if !ok {
		return false
	}
	conn := a.Call.Conn()
	kill := func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), e.Command)
		defer cancel()
		err := f.Fence(ctx, &a.Call)
		if err != nil {
			e.Logger.Debug("redlatch: old connection not fenced", "connection", conn, "error", err)
		}
		return err == nil
	}
	if conn == 0 {
		kill() // the transport may log why it cannot
		return false
	}
	return e.fences.do(conn, kill)
}

// fenceMemory is how long a fence's result is shared.
const fenceMemory = time.Second

type fences struct {
	mu   sync.Mutex // guards byID; not held during I/O
	byID map[int64]*fence
}

type fence struct {
	done  chan struct{}
	ok    bool      // read after done is closed
	ended time.Time // zero while it runs; guarded by fences.mu
}

// do runs kill once for all concurrent callers that pass the same conn, and returns whether that connection is gone. A
// failure may be retried later.
func (f *fences) do(conn int64, kill func() bool) bool {
	f.mu.Lock()
	maps.DeleteFunc(f.byID, func(_ int64, one *fence) bool {
		return !one.ended.IsZero() && time.Since(one.ended) > fenceMemory
	})
	if one := f.byID[conn]; one != nil {
		f.mu.Unlock()
		<-one.done
		return one.ok
	}
	one := &fence{done: make(chan struct{})}
	if f.byID == nil {
		f.byID = map[int64]*fence{}
	}
	f.byID[conn] = one
	f.mu.Unlock()
	one.ok = kill()
	f.mu.Lock()
	one.ended = time.Now()
	f.mu.Unlock()
	close(one.done)
	return one.ok
}
