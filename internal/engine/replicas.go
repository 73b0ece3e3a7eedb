package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/transport"
)

type replicated struct {
	reply any
	have  int64
	err   error
}

// Replication is the wait until replicas have a lock.
type Replication struct {
	engine *Engine
	held   func(reply any) (bool, error)
	call   *transport.Call
	came   chan replicated
	until  time.Time
	err    error // set if the transport cannot wait for replicas
}

// Replicate starts waiting for Config.Replicas replicas to receive a lock. fill fills a call that writes the lock again
// without changing it; held decodes the reply and reports whether the lock is still held.
func (e *Engine) Replicate(fill func(*transport.Call), held func(reply any) (bool, error)) *Replication {
	r, ok := e.Transport.(transport.Replicator)
	if !ok {
		return &Replication{err: NoReplicator(e.Transport)}
	}
	n := &Replication{
		engine: e, held: held, call: &transport.Call{Urgent: true}, came: make(chan replicated, 1),
		// A call may have to wait for an earlier WAIT.
		until: time.Now().Add(2*e.SyncWait + e.Command),
	}
	fill(n.call)
	r.Replicate(n.call, e.Replicas, e.SyncWait, func(reply any, have int64, err error) {
		n.came <- replicated{reply, have, err}
	})
	return n
}

// Wait returns nil when enough replicas have the lock. An error wraps ErrNotReplicated, and the context's error or
// ErrClosed. Wait must be called only once.
func (n *Replication) Wait(ctx context.Context) error {
	if n.err != nil {
		return fmt.Errorf("%w: %w", ErrNotReplicated, n.err)
	}
	silence := time.NewTimer(time.Until(n.until))
	defer silence.Stop()
	var why error
	select {
	case out := <-n.came:
		return out.enough(n.engine, n.held)
	case <-ctx.Done():
		why = EndOf(ctx)
	case <-n.engine.Closing():
		why = ErrClosed
	case <-silence.C:
		why = fmt.Errorf("no reply within %v", 2*n.engine.SyncWait+n.engine.Command)
	}
	n.Abandon()
	return fmt.Errorf("%w: %w", ErrNotReplicated, why)
}

// Abandon ends a wait early. The call need not be resolved, because it doesn't change anything.
func (n *Replication) Abandon() {
	if n.call != nil {
		n.call.Abandon()
	}
}

func (out *replicated) enough(e *Engine, holds func(reply any) (bool, error)) error {
	if out.err != nil {
		return fmt.Errorf("%w: %w", ErrNotReplicated, inWords(out.err))
	}
	held, err := holds(out.reply)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotReplicated, err)
	case !held:
		return fmt.Errorf("%w: the master no longer has the lock", ErrNotReplicated)
	case out.have < int64(e.Replicas):
		return fmt.Errorf("%w: %d of %d required replicas within %v", ErrNotReplicated, out.have, e.Replicas, e.SyncWait)
	}
	return nil
}

// inWords removes errors that errors.Is must not find, because they are not about the acquisition.
func inWords(err error) error {
	switch {
	case errors.Is(err, ErrClosed):
		return ErrClosed
	case errors.Is(err, ErrNotSent), errors.Is(err, ErrUncertain):
		return errors.New(err.Error())
	}
	return err
}

// NoReplicator returns an error if t is not a Replicator.
func NoReplicator(t transport.Transport) error {
	if _, ok := t.(transport.Replicator); ok {
		return nil
	}
	return fmt.Errorf("WithReplicaSync requires a transport.Replicator: %T is not one", t)
}
