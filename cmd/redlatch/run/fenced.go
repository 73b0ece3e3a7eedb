package run

import (
	"context"
	"strconv"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// locker is a lock of any kind.
type locker interface {
	Name() string
	Lock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error)
	TryLock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error)
	Resume(ctx context.Context, owner redlatch.Owner, opts ...rlock.Option) (*rlock.Hold, error)
}

// lock returns the lock of the kind that the flags say.
func (o *runOptions) lock(client *redlatch.Client, name string) locker {
	switch {
	case o.fenced && o.fair:
		return fenced{rfencedlock.NewFair(client, name)}
	case o.fenced:
		return fenced{rfencedlock.New(client, name)}
	case o.fair:
		return rfairlock.New(client, name)
	case o.read:
		return rreadwritelock.New(client, name).Read()
	case o.write:
		return rreadwritelock.New(client, name).Write()
	}
	return rlock.New(client, name)
}

// fenced is a lock with tokens as a locker: its holds have them inside.
type fenced struct{ lock *rfencedlock.Lock }

// Name is part of locker.
func (f fenced) Name() string { return f.lock.Name() }

// Lock is part of locker.
func (f fenced) Lock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error) {
	return inner(f.lock.Lock(ctx, opts...))
}

// TryLock is part of locker.
func (f fenced) TryLock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error) {
	return inner(f.lock.TryLock(ctx, opts...))
}

// Resume is part of locker.
func (f fenced) Resume(ctx context.Context, owner redlatch.Owner, opts ...rlock.Option) (*rlock.Hold, error) {
	return inner(f.lock.Resume(ctx, owner, opts...))
}

func inner(h *rfencedlock.Hold, err error) (*rlock.Hold, error) {
	if err != nil {
		return nil, err
	}
	return h.Hold, nil
}

// environment is what the command gets to know of the hold: REDLATCH_TOKEN only where there is one.
func (h *held) environment() []string {
	env := []string{"REDLATCH_LOCK=" + h.lock.Name()}
	if owner := h.hold.Owner(); owner.IsZero() {
		text, _ := h.hold.Internal().Request().Owner.(string) // always one
		env = append(env, "REDLATCH_PERMIT="+text)
	} else {
		env = append(env, "REDLATCH_OWNER="+owner.String())
	}
	if token := h.hold.Internal().Token(); token > 0 {
		env = append(env, "REDLATCH_TOKEN="+strconv.FormatInt(token, 10))
	}
	return env
}
