// Package kind has the kinds of the plain and the fair lock, which those with tokens embed, and
// what all kinds have in common whose key is a hash of owners.
package kind

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/transport"
)

// Hash is what kinds have in common whose key is a hash with a field for each owner. It is safe
// for concurrent use.
type Hash struct{ key string }

// NewHash returns the part of the lock at key.
func NewHash(key string) Hash { return Hash{key} }

// Key is part of acquire.Waitable.
func (h Hash) Key() string { return h.key }

// Decode is part of acquire.Waitable.
func (Hash) Decode(answer any) (acquire.Outcome, error) {
	granted, ttl, err := reply.Acquired(answer)
	if granted || err != nil {
		return acquire.Outcome{Granted: granted}, err
	}
	r := reply.Refused(answer)
	return acquire.Outcome{TTL: ttl, Holder: r.Holder, Free: r.Free, Foreign: r.Foreign, Head: r.Head, Queued: r.Position > 0, Position: r.Position}, nil
}

// LookForeign is part of acquire.Foreigner.
func (h Hash) LookForeign(c *transport.Call) { luasrc.FillForeign(c, h.key) }

// Foreign is part of acquire.Foreigner.
func (Hash) Foreign(answer any) (field string, foreign bool) {
	field, foreign, err := reply.Foreign(answer)
	return field, foreign && err == nil
}

// Released is part of hold.Kind.
func (Hash) Released(answer any) (reply.ReleaseOutcome, error) { return reply.Released(answer) }

// Reentered is part of hold.Reentrant.
func (Hash) Reentered(answer any) (bool, error) { return reply.Reentered(answer) }

// Forced is part of hold.Forcible.
func (Hash) Forced(answer any) (bool, error) { return reply.Forced(answer) }

// Inspected is part of hold.Inspectable.
func (Hash) Inspected(answer any) (reply.Inspection, error) { return reply.Inspected(answer) }

// Replicate is part of hold.Replicable.
func (h Hash) Replicate(c *transport.Call, owner any) { luasrc.FillReplicate(c, h.key, owner) }

// Replicated is part of hold.Replicable.
func (Hash) Replicated(answer any) (bool, error) { return reply.Holds(answer) }

var renewal = watchdog.Renewal{Fill: luasrc.FillRenew, Renewed: reply.RenewedAt}

// Renewal is part of hold.Kind: one script for all of them.
func (Hash) Renewal() *watchdog.Renewal { return &renewal }

// Plain is the kind of the reentrant lock: Redisson's getLock. A kind that differs in how the
// lock is taken embeds it. It is safe for concurrent use.
type Plain struct {
	Hash
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
	acquire.Transferable
} = (*Plain)(nil)

// NewPlain returns the kind of the plain lock at a key.
func NewPlain(e *engine.Engine, mapped string) *Plain {
	channel := codec.LockChannel(mapped)
	return &Plain{NewHash(mapped), channel, luasrc.Plain{Key: mapped, Channel: channel, Publish: e.Publish()}}
}

// Name is part of acquire.Waitable.
func (k *Plain) Name() string { return "plain" }

// Family is part of hold.Kind.
func (k *Plain) Family() string { return "plain" }

// Channel is part of acquire.Waitable. All waiters share one.
func (k *Plain) Channel(any) string { return k.channel }

// Acquire is part of acquire.Waitable.
func (k *Plain) Acquire(c *transport.Call, r *acquire.Request) {
	k.scripts.Acquire(c, r.Owner, r.Lease)
}

// Transfer is part of acquire.Transferable.
func (k *Plain) Transfer(c *transport.Call, r *acquire.Request, from any) {
	k.scripts.Pass(c, from, r.Owner, r.Lease)
}

// Reenter is part of hold.Reentrant.
func (k *Plain) Reenter(c *transport.Call, r *acquire.Request) {
	k.scripts.Reenter(c, r.Owner, r.Lease, r.Target)
}

// Release is part of hold.Kind.
func (k *Plain) Release(c *transport.Call, r *acquire.Request) {
	k.scripts.Release(c, r.Owner, r.Lease, r.Target)
}

// ReleaseShared is part of hold.Shareable.
func (k *Plain) ReleaseShared(c *transport.Call, r *acquire.Request, latch string) {
	k.scripts.ReleaseShared(c, latch, r.Owner, r.Lease)
}

// ForceRelease is part of hold.Forcible.
func (k *Plain) ForceRelease(c *transport.Call) { k.scripts.ForceRelease(c) }

// Inspect is part of hold.Inspectable: there is no queue on the server.
func (k *Plain) Inspect(c *transport.Call, _, _ int64) { k.scripts.Inspect(c) }
