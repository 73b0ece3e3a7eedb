package plainlock

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hashlock"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/localqueue"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// Kind is the kind of the reentrant lock: Redisson's getLock. A kind that differs in how the
// lock is taken embeds it. It is safe for concurrent use.
type Kind struct {
	hashlock.Kind
	channel string
	scripts luasrc.Plain
}

var _ interface {
	hold.Kind
	hold.Reentrant
	hold.Shareable
	hold.Forcible
	hold.Inspectable
	hold.Replicable
	localqueue.Kind
} = (*Kind)(nil)

// New returns the kind of the plain lock at a key.
func New(e *engine.Engine, mapped string) *Kind {
	channel := codec.LockChannel(mapped)
	return &Kind{hashlock.New(mapped), channel, luasrc.Plain{Key: mapped, Channel: channel, Publish: e.Publish()}}
}

// Name is part of acquire.Waitable.
func (k *Kind) Name() string { return "plain" }

// Family is part of hold.Kind.
func (k *Kind) Family() string { return "plain" }

// Channel is part of acquire.Waitable. All waiters share one.
func (k *Kind) Channel(any) string { return k.channel }

// Acquire is part of acquire.Waitable.
func (k *Kind) Acquire(c *transport.Call, r *acquire.Request) {
	k.scripts.Acquire(c, r.Owner, r.Lease)
}

// Transfer is part of localqueue.Kind.
func (k *Kind) Transfer(c *transport.Call, r *acquire.Request, from any) {
	k.scripts.Pass(c, from, r.Owner, r.Lease)
}

// Reenter is part of hold.Reentrant.
func (k *Kind) Reenter(c *transport.Call, r *acquire.Request) {
	k.scripts.Reenter(c, r.Owner, r.Lease, r.Target)
}

// Release is part of hold.Kind.
func (k *Kind) Release(c *transport.Call, r *acquire.Request) {
	k.scripts.Release(c, r.Owner, r.Lease, r.Target)
}

// ReleaseShared is part of hold.Shareable.
func (k *Kind) ReleaseShared(c *transport.Call, r *acquire.Request, latch string) {
	k.scripts.ReleaseShared(c, latch, r.Owner, r.Lease)
}

// ForceRelease is part of hold.Forcible.
func (k *Kind) ForceRelease(c *transport.Call) { k.scripts.ForceRelease(c) }

// Inspect is part of hold.Inspectable: there is no queue on the server.
func (k *Kind) Inspect(c *transport.Call, _, _ int64) { k.scripts.Inspect(c) }
