package rlock

import (
	"context"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/transport"
)

// command returns the filler of a plain command about the lock's key.
func (l *Lock) command(name string, args ...any) func(*transport.Call) {
	return func(c *transport.Call) {
		c.Command, c.NumKeys = name, 1
		c.Args = append(append(c.Args, l.Internal().Kind.Key()), args...)
	}
}

// ask runs a call that may be repeated.
func (l *Lock) ask(ctx context.Context, op string, fill func(*transport.Call)) (any, error) {
	answer, err := l.Internal().Ask(ctx, fill)
	return answer, l.wrap(op, redlatch.Owner{}, err)
}

// wrap makes an error say what was done to which lock. Nil stays nil.
func (l *Lock) wrap(op string, owner redlatch.Owner, err error) error {
	return wrap(l.Internal(), op, owner, err)
}

func wrap(l *hold.Lock, op string, owner redlatch.Owner, err error) error {
	if err == nil {
		return nil
	}
	return &redlatch.LockError{Op: op, Name: l.Name, Owner: owner, Err: err}
}
