package rlock

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

// plain is the kind of the reentrant lock: Redisson's getLock.
type plain struct {
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
} = (*plain)(nil)

// makePlain is a hold.Make.
func makePlain(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
	channel := codec.LockChannel(mapped)
	p := &plain{hashlock.New(mapped), channel, luasrc.Plain{Key: mapped, Channel: channel, Publish: e.Publish()}}
	return p, localqueue.New(e, p)
}

// Name is part of acquire.Waitable.
func (p *plain) Name() string { return "plain" }

// Family is part of hold.Kind.
func (p *plain) Family() string { return "plain" }

// Channel is part of acquire.Waitable. All waiters share one.
func (p *plain) Channel(any) string { return p.channel }

// Acquire is part of acquire.Waitable.
func (p *plain) Acquire(c *transport.Call, r *acquire.Request) {
	p.scripts.Acquire(c, r.Owner, r.Lease)
}

// Transfer is part of localqueue.Kind.
func (p *plain) Transfer(c *transport.Call, r *acquire.Request, from any) {
	p.scripts.Pass(c, from, r.Owner, r.Lease)
}

// Reenter is part of hold.Reentrant.
func (p *plain) Reenter(c *transport.Call, r *acquire.Request) {
	p.scripts.Reenter(c, r.Owner, r.Lease, r.Target)
}

// Release is part of hold.Kind.
func (p *plain) Release(c *transport.Call, r *acquire.Request) {
	p.scripts.Release(c, r.Owner, r.Lease, r.Target)
}

// ReleaseShared is part of hold.Shareable.
func (p *plain) ReleaseShared(c *transport.Call, r *acquire.Request, latch string) {
	p.scripts.ReleaseShared(c, latch, r.Owner, r.Lease)
}

// ForceRelease is part of hold.Forcible.
func (p *plain) ForceRelease(c *transport.Call) { p.scripts.ForceRelease(c) }

// Inspect is part of hold.Inspectable: there is no queue on the server.
func (p *plain) Inspect(c *transport.Call, _, _ int64) { p.scripts.Inspect(c) }
