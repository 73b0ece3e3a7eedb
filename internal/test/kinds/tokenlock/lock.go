// Package tokenlock is a kind of lock for tests: a plain lock that counts its grants, so that
// each hold but a re-entry has a token, higher than that of every hold before. It shows how
// little a kind is; CONTRIBUTING explains it line by line.
//
//	lock          hash: owner -> count; TTL = lease, as the plain lock has it
//	lock:token    number: the token of the last grant
package tokenlock

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	kinds "github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/localqueue"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// Lock is a lock by name, as rlock.Lock is. Only taking it is different.
type Lock struct{ *plain }

type plain = rlock.Lock

// Hold is a lock that was acquired, and its token.
type Hold struct{ *rlock.Hold }

// New returns the lock called name.
func New(client *redlatch.Client, name string) *Lock {
	l := &rlock.Lock{}
	*l.Internal() = hold.NewLock(engine.EngineOf(client), name, makeKind)
	return &Lock{l}
}

// Lock takes the lock and waits for it, as rlock's does.
func (l *Lock) Lock(ctx context.Context, opts ...rlock.Option) (*Hold, error) {
	return withToken(l.plain.Lock(ctx, opts...))
}

// TryLock takes the lock if it is free, as rlock's does.
func (l *Lock) TryLock(ctx context.Context, opts ...rlock.Option) (*Hold, error) {
	return withToken(l.plain.TryLock(ctx, opts...))
}

func withToken(h *rlock.Hold, err error) (*Hold, error) {
	if err != nil {
		return nil, err
	}
	return &Hold{h}, nil
}

// Token returns the number of the grant.
func (h *Hold) Token() int64 { return h.Internal().Token() }

// kind is what is asked of the server. All but taking the lock is as for the plain lock.
type kind struct {
	kinds.Hash
	channel string
	token   string
	scripts luasrc.Plain
}

var _ interface {
	hold.Kind
	hold.Reentrant
	hold.Inspectable
	acquire.Transferable
} = (*kind)(nil)

func makeKind(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
	channel := codec.LockChannel(mapped)
	k := &kind{
		kinds.NewHash(mapped), channel, "{" + mapped + "}:token",
		luasrc.Plain{Key: mapped, Channel: channel, Publish: e.Publish()},
	}
	return k, localqueue.New(e, k)
}

//go:embed acquire.lua
var acquireText string

//go:embed transfer.lua
var transferText string

var (
	acquireScript  = transport.NewScript("token_acquire", acquireText)
	transferScript = transport.NewScript("token_transfer", transferText)
)

// What names the kind, and its channel: all waiters share one.
func (k *kind) Name() string       { return "token" }
func (k *kind) Family() string     { return "token" }
func (k *kind) Channel(any) string { return k.channel }

// Acquire is part of acquire.Waitable.
func (k *kind) Acquire(c *transport.Call, r *acquire.Request) {
	c.Script, c.NumKeys = acquireScript, 2
	c.Args = append(c.Args, k.Key(), k.token, r.Owner, r.Lease)
}

// Transfer is part of acquire.Transferable: a lock that is transferred has another token.
func (k *kind) Transfer(c *transport.Call, r *acquire.Request, from any) {
	c.Script, c.NumKeys = transferScript, 2
	c.Args = append(c.Args, k.Key(), k.token, from, r.Owner, r.Lease)
}

// Decode is part of acquire.Waitable: a grant is a token in an array, and all else is as for the
// plain lock.
func (k *kind) Decode(answer any) (acquire.Outcome, error) {
	grant, ok := answer.([]any)
	if !ok || len(grant) != 1 {
		return k.Hash.Decode(answer)
	}
	token, ok := grant[0].(int64)
	if !ok {
		return acquire.Outcome{}, fmt.Errorf("%w: a token of type %T", transport.ErrBadReply, grant[0])
	}
	return acquire.Outcome{Granted: true, Token: token}, nil
}

// Release is part of hold.Kind. It does nothing for an owner that does not hold the lock.
func (k *kind) Release(c *transport.Call, r *acquire.Request) {
	k.scripts.Release(c, r.Owner, r.Lease, r.Target)
}

// Reenter is part of hold.Reentrant.
func (k *kind) Reenter(c *transport.Call, r *acquire.Request) {
	k.scripts.Reenter(c, r.Owner, r.Lease, r.Target)
}

// Inspect is part of hold.Inspectable.
func (k *kind) Inspect(c *transport.Call, _, _ int64) { k.scripts.Inspect(c) }
