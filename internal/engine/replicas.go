package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// replicated is the outcome of a call that replicas were waited for.
type replicated struct {
	reply any
	have  int64
	err   error
}

// Replication is a lock that replicas are waited for. Of the zero Replication no replica can be
// waited for.
type Replication struct {
	engine *Engine
	held   func(reply any) (bool, error)
	call   *transport.Call
	came   chan replicated
	until  time.Time // when the answer must have come
	err    error     // why there is nothing to wait for
}

// Replicate begins to wait until as many replicas as the client asks for have a lock. Fill fills
// the call that writes the lock once more as it is, and held reads its reply: whether the owner
// holds the lock. What begins together shares a WAIT or two on each master.
func (e *Engine) Replicate(fill func(*transport.Call), held func(reply any) (bool, error)) *Replication {
	r, ok := e.Transport.(transport.Replicator)
	if !ok {
		return &Replication{err: NoReplicator(e.Transport)}
	}
	n := &Replication{
		engine: e, held: held, call: &transport.Call{Urgent: true}, came: make(chan replicated, 1),
		// A call that comes while others wait may wait for them, too.
		until: time.Now().Add(2*e.SyncWait + e.Command),
	}
	fill(n.call)
	r.Replicate(n.call, e.Replicas, e.SyncWait, func(reply any, have int64, err error) {
		n.came <- replicated{reply, have, err}
	})
	return n
}

// Wait returns nil when enough replicas have the lock. The error wraps ErrNotReplicated, with the
// context's error or ErrClosed when these ended the wait. The lease goes on meanwhile. It is for
// one call.
func (n *Replication) Wait(ctx context.Context) error {
	switch {
	case n.err != nil:
		return fmt.Errorf("%w: %w", ErrNotReplicated, n.err)
	case n.call == nil:
		return ErrNotReplicated
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
		why = fmt.Errorf("no answer within %v", 2*n.engine.SyncWait+n.engine.Command)
	}
	n.Abandon()
	return fmt.Errorf("%w: %w", ErrNotReplicated, why)
}

// Abandon ends what is not waited for any more: it changes nothing, so what becomes of it does not
// matter.
func (n *Replication) Abandon() {
	if n != nil && n.call != nil {
		n.call.Abandon()
	}
}

// enough returns nil when there are enough replicas, else why not.
func (out *replicated) enough(e *Engine, holds func(reply any) (bool, error)) error {
	if out.err != nil {
		return fmt.Errorf("%w: %w", ErrNotReplicated, inWords(out.err))
	}
	held, err := holds(out.reply)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotReplicated, err)
	case !held:
		return fmt.Errorf("%w: the master that was asked does not have it any more", ErrNotReplicated)
	case out.have < int64(e.Replicas):
		return fmt.Errorf("%w: %d of the %d asked for within %v", ErrNotReplicated, out.have, e.Replicas, e.SyncWait)
	}
	return nil
}

// inWords keeps of an error what it says about the acquisition: what became of the
// question alone is named in words only.
func inWords(err error) error {
	switch {
	case errors.Is(err, ErrClosed):
		return ErrClosed
	case errors.Is(err, ErrNotSent), errors.Is(err, ErrUncertain):
		return errors.New(err.Error())
	}
	return err
}

// NoReplicator is the error of a transport that cannot wait for replicas, nil if it can.
func NoReplicator(t transport.Transport) error {
	if _, ok := t.(transport.Replicator); ok {
		return nil
	}
	return fmt.Errorf("WithReplicaSync needs a transport that is a transport.Replicator, which a %T is not", t)
}
