package holding

import (
	"context"
	"strconv"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// Locker is a lock of any kind.
type Locker interface {
	// Name returns the lock's name.
	Name() string
	// Lock waits for the lock, as the method of its kind does.
	Lock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error)
	// TryLock takes the lock or fails at once, as the method of its kind does.
	TryLock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error)
	// Resume goes on with the hold of an owner, as the method of its kind does.
	Resume(ctx context.Context, owner redlatch.Owner, opts ...rlock.Option) (*rlock.Hold, error)
}

// lock returns the lock of the kind that the flags say.
func (o *Options) lock(client *redlatch.Client, name string) Locker {
	switch {
	case o.Fenced && o.Fair:
		return fenced{rfencedlock.NewFair(client, name)}
	case o.Fenced:
		return fenced{rfencedlock.New(client, name)}
	case o.Fair:
		return rfairlock.New(client, name)
	case o.Read:
		return rreadwritelock.New(client, name).Read()
	case o.Write:
		return rreadwritelock.New(client, name).Write()
	}
	return rlock.New(client, name)
}

// fenced is a lock with tokens as a Locker: its holds have them inside.
type fenced struct{ lock *rfencedlock.Lock }

// Name is part of Locker.
func (f fenced) Name() string { return f.lock.Name() }

// Lock is part of Locker.
func (f fenced) Lock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error) {
	return inner(f.lock.Lock(ctx, opts...))
}

// TryLock is part of Locker.
func (f fenced) TryLock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error) {
	return inner(f.lock.TryLock(ctx, opts...))
}

// Resume is part of Locker.
func (f fenced) Resume(ctx context.Context, owner redlatch.Owner, opts ...rlock.Option) (*rlock.Hold, error) {
	return inner(f.lock.Resume(ctx, owner, opts...))
}

func inner(h *rfencedlock.Hold, err error) (*rlock.Hold, error) {
	if err != nil {
		return nil, err
	}
	return h.Hold, nil
}

// Owner returns the owner that holds the lock, or the id of the permit.
func (h *Held) Owner() string {
	if owner := h.Hold.Owner(); !owner.IsZero() {
		return owner.String()
	}
	text, _ := h.Hold.Internal().Request().Owner.(string) // always one
	return text
}

// Token returns the fencing token, "" where there is none.
func (h *Held) Token() string {
	if token := h.Hold.Internal().Token(); token > 0 {
		return strconv.FormatInt(token, 10)
	}
	return ""
}

// The variables that tell of a hold.
const (
	EnvLock   = "REDLATCH_LOCK"
	EnvOwner  = "REDLATCH_OWNER"
	EnvPermit = "REDLATCH_PERMIT"
	EnvToken  = "REDLATCH_TOKEN" //nolint:gosec // the name of a fencing token, which is no secret
	// EnvHold is the socket of a hold in the background, EnvPID its process.
	EnvHold = "REDLATCH_HOLD"
	EnvPID  = "REDLATCH_HOLD_PID"
)

// Variables returns the names of all variables that tell of a hold.
func Variables() []string {
	return []string{EnvLock, EnvOwner, EnvPermit, EnvToken, EnvHold, EnvPID}
}

// Environment is what a command gets to know of the hold: REDLATCH_TOKEN only where there is one.
func (h *Held) Environment() []string {
	env := []string{EnvLock + "=" + h.Lock.Name()}
	if h.Hold.Owner().IsZero() {
		env = append(env, EnvPermit+"="+h.Owner())
	} else {
		env = append(env, EnvOwner+"="+h.Owner())
	}
	if token := h.Token(); token != "" {
		env = append(env, EnvToken+"="+token)
	}
	return env
}
