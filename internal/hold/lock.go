package hold

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// Lock is what all holds of one lock have in common. It is safe for concurrent use, and does
// not change after [NewLock].
type Lock struct {
	// Engine is the client's.
	Engine *engine.Engine
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is what is asked of the server.
	Kind Kind
	// Strategy is how the callers of this process wait.
	Strategy acquire.Strategy
	// Err is why the name cannot be used, nil when it can.
	Err error

	key   any           // of the lock, boxed once
	proof any           // the proofKey, boxed once
	trust time.Duration // for how long a confirmation of a lease counts; 0: for all of it
}

// Make makes a kind of lock for a mapped name, and how its callers wait.
type Make func(e *engine.Engine, mapped string) (Kind, acquire.Strategy)

// NewLock returns what the holds of a lock called name have in common.
func NewLock(e *engine.Engine, name string, make Make) Lock {
	mapped, err := e.Map(name)
	kind, strategy := make(e, mapped)
	l := Lock{
		Engine: e, Name: name, Kind: kind, Strategy: strategy, Err: err,
		key: kind.Key(), proof: proofKey{e, kind.Family(), kind.Key()},
	}
	if l.shares() {
		l.trust = e.Lease
	}
	return l
}

// newOwner returns an owner that was never used, and its text, boxed.
func (l *Lock) newOwner() (codec.Owner, any) {
	if k, ok := l.Kind.(Identifying); ok {
		return codec.Owner{}, k.NewID()
	}
	owner := l.Engine.NextOwner()
	return owner, l.Text(owner)
}

// Text returns an owner as it stands in the lock's hash.
func (l *Lock) Text(owner codec.Owner) string {
	text := owner.String()
	if f, ok := l.Kind.(Fielding); ok {
		return f.Field(text)
	}
	return text
}

// LockHandle has the lock of a public type. A public type embeds it under an unexported name,
// so that packages of this module reach the lock, and the type's documentation shows nothing
// of it.
type LockHandle struct{ lock Lock }

// Internal returns the lock.
func (h *LockHandle) Internal() *Lock { return &h.lock }

// Handle has the hold of a public type, as [LockHandle] has the lock.
type Handle struct{ hold Hold }

// Internal returns the hold.
func (h *Handle) Internal() *Hold { return &h.hold }

// Prepare finds out what the kind's scripts need.
func (l *Lock) Prepare(ctx context.Context) {
	if p, ok := l.Kind.(Preparing); ok {
		p.Prepare(ctx)
	}
}

// Check returns why a call with ctx about the lock cannot begin, nil when it can.
func (l *Lock) Check(ctx context.Context) error {
	switch {
	case l.Err != nil:
		return l.Err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", engine.ErrNotSent, engine.EndOf(ctx))
	}
	return nil
}

// Ask runs a call that may be repeated: while Redis cannot be reached it is tried again for
// one command timeout, or until ctx ends.
func (l *Lock) Ask(ctx context.Context, fill func(*transport.Call)) (any, error) {
	engine.NeedContext(ctx)
	if err := l.Check(ctx); err != nil {
		return nil, err
	}
	if err := l.Engine.Enter(); err != nil {
		return nil, err
	}
	defer l.Engine.Leave()
	var reply any
	err := l.Engine.Retry(ctx, func() error {
		a := l.Engine.Attempt()
		fill(&a.Call)
		var err error
		reply, err = a.Run(ctx, nil)
		return err
	})
	return reply, l.Engine.ExplainKey(ctx, l.Kind.Name(), l.Kind.Key(), engine.WithEnd(ctx, err))
}
