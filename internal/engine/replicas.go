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

// AwaitReplicas waits until as many replicas as the client asks for have a lock. Fill fills
// the call that writes the lock once more as it is, and held reads its reply: whether the
// owner holds the lock. The error wraps ErrNotReplicated, with the context's error or
// ErrClosed when these ended the wait. The lease goes on meanwhile.
func (e *Engine) AwaitReplicas(ctx context.Context, fill func(*transport.Call), held func(reply any) (bool, error)) error {
	r, ok := e.Transport.(transport.Replicator)
	if !ok {
		return fmt.Errorf("%w: %w", ErrNotReplicated, NoReplicator(e.Transport))
	}
	call := &transport.Call{Urgent: true}
	fill(call)
	came := make(chan replicated, 1)
	r.Replicate(call, e.Replicas, e.SyncWait, func(reply any, have int64, err error) {
		came <- replicated{reply, have, err}
	})
	// A call that comes while others wait may wait for them, too.
	bound := 2*e.SyncWait + e.Command
	silence := time.NewTimer(bound)
	defer silence.Stop()
	var why error
	select {
	case out := <-came:
		return out.enough(e, held)
	case <-ctx.Done():
		why = EndOf(ctx)
	case <-e.Closing():
		why = ErrClosed
	case <-silence.C:
		why = fmt.Errorf("no answer within %v", bound)
	}
	call.Abandon() // it changes nothing, so what becomes of it does not matter
	return fmt.Errorf("%w: %w", ErrNotReplicated, why)
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
