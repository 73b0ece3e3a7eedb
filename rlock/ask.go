package rlock

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// command returns the filler of a plain command about the lock's key.
func (l *Lock) command(name string, args ...any) func(*transport.Call) {
	return func(c *transport.Call) {
		c.Command, c.NumKeys = name, 1
		c.Args = append(append(c.Args, l.proto.Key()), args...)
	}
}

// ask runs a call that may be repeated: while Redis cannot be reached it is
// tried again for one command timeout, or until ctx ends.
func (l *Lock) ask(ctx context.Context, op string, fill func(*transport.Call)) (any, error) {
	engine.NeedContext(ctx)
	if l.err != nil {
		return nil, l.wrap(op, codec.Owner{}, l.err)
	}
	if ctx.Err() != nil {
		return nil, l.wrap(op, codec.Owner{}, fmt.Errorf("%w: %w", redlatch.ErrNotSent, engine.EndOf(ctx)))
	}
	if err := l.engine.Enter(); err != nil {
		return nil, l.wrap(op, codec.Owner{}, err)
	}
	defer l.engine.Leave()
	var reply any
	err := l.engine.Retry(ctx, func() error {
		a := l.engine.Attempt()
		fill(&a.Call)
		var err error
		reply, err = a.Run(ctx, nil)
		return err
	})
	return reply, l.wrap(op, codec.Owner{}, engine.Explain(withEnd(ctx, err)))
}

// wrap makes an error say what was done to which lock. Nil stays nil.
func (l *Lock) wrap(op string, owner codec.Owner, err error) error {
	if err == nil {
		return nil
	}
	return &redlatch.LockError{Op: op, Name: l.name, Owner: owner, Err: err}
}
