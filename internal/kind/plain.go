// Package kind implements the plain and the fair lock, which the fenced locks embed.
package kind

import (
	"context"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/transport"
)

// Hash is the common part of kinds whose key is a hash with a field per owner. It is safe for
// concurrent use.
type Hash struct{ key string }

// NewHash returns the common part of the lock at key.
func NewHash(key string) Hash { return Hash{key} }

// Key implements acquire.Waitable.
func (h Hash) Key() string { return h.key }

// Decode implements acquire.Waitable.
func (Hash) Decode(answer any) (acquire.Outcome, error) {
	granted, ttl, err := reply.Acquired(answer)
	if granted || err != nil {
		return acquire.Outcome{Granted: granted}, err
	}
	r := reply.Refused(answer)
	return acquire.Outcome{TTL: ttl, Holder: r.Holder, Free: r.Free, Foreign: r.Foreign, Head: r.Head, Queued: r.Position > 0, Position: r.Position}, nil
}

// LookForeign implements acquire.Foreigner.
func (h Hash) LookForeign(c *transport.Call) { luasrc.FillForeign(c, h.key) }

// Foreign implements acquire.Foreigner.
func (Hash) Foreign(answer any) (field string, foreign bool) {
	field, foreign, err := reply.Foreign(answer)
	return field, foreign && err == nil
}

// Prepare implements hold.Kind.
func (Hash) Prepare(context.Context) {}

// Released implements hold.Kind.
func (Hash) Released(answer any) (reply.ReleaseOutcome, error) { return reply.Released(answer) }

// Replicate implements hold.Kind.
func (h Hash) Replicate(c *transport.Call, owner any) { luasrc.FillReplicate(c, h.key, owner) }

// Replicated implements hold.Kind.
func (Hash) Replicated(answer any) (bool, error) { return reply.Holds(answer) }

var renewal = watchdog.Renewal{Fill: luasrc.FillRenew, Renewed: reply.RenewedAt}

// Renewal implements hold.Kind. All these kinds share it, so that one script renews their holds.
func (Hash) Renewal() *watchdog.Renewal { return &renewal }

// Field implements hold.Owning.
func (Hash) Field(owner string) string { return owner }

// Reentered implements hold.Owning.
func (Hash) Reentered(answer any) (held bool, token int64, err error) {
	held, err = reply.Reentered(answer)
	return held, 0, err
}

// Fences implements hold.Owning.
func (Hash) Fences() bool { return false }

// Under implements hold.Owning.
func (Hash) Under() error { return hold.ErrNotReentered }

// Shares implements hold.Owning.
func (Hash) Shares() bool { return false }

// Forced implements hold.Owning.
func (Hash) Forced(answer any) (bool, error) { return reply.Forced(answer) }

// IsLocked implements hold.Owning.
func (h Hash) IsLocked(c *transport.Call) {
	c.Command, c.NumKeys = "EXISTS", 1
	c.Args = append(c.Args, h.key)
}

// Locked implements hold.Owning.
func (Hash) Locked(answer any) (bool, error) { return reply.Exists(answer) }

// Inspected implements hold.Owning.
func (Hash) Inspected(answer any) (reply.Inspection, error) { return reply.Inspected(answer) }

// Plain is the reentrant lock, Redisson's getLock. It is safe for concurrent use.
type Plain struct {
	Hash
	channel string
	scripts luasrc.Plain
}

var _ interface {
	hold.Kind
	hold.Owning
	acquire.Transferable
} = (*Plain)(nil)

// NewPlain returns the kind for plain locks. If tokens has a counter, each grant comes with a
// token.
func NewPlain(e *engine.Engine, mapped string, tokens luasrc.Tokens) *Plain {
	channel := codec.LockChannel(mapped)
	return &Plain{NewHash(mapped), channel, luasrc.Plain{Key: mapped, Channel: channel, Publish: e.Publish(), Tokens: tokens}}
}

// Name implements acquire.Waitable.
func (k *Plain) Name() string { return "plain" }

// Family implements hold.Kind.
func (k *Plain) Family() string { return "plain" }

// Channel implements acquire.Waitable. All waiters share the channel.
func (k *Plain) Channel(any) string { return k.channel }

// Acquire implements acquire.Waitable.
func (k *Plain) Acquire(c *transport.Call, r *acquire.Request) {
	k.scripts.Acquire(c, r.Owner, r.Lease)
}

// Transfer implements acquire.Transferable.
func (k *Plain) Transfer(c *transport.Call, r *acquire.Request, from any) {
	k.scripts.Pass(c, from, r.Owner, r.Lease)
}

// Reenter implements hold.Owning.
func (k *Plain) Reenter(c *transport.Call, r *acquire.Request) {
	k.scripts.Reenter(c, r.Owner, r.Lease, r.Target)
}

// Release implements hold.Kind.
func (k *Plain) Release(c *transport.Call, r *acquire.Request) {
	k.scripts.Release(c, r.Owner, r.Lease, r.Target)
}

// ReleaseShared implements hold.Owning.
func (k *Plain) ReleaseShared(c *transport.Call, r *acquire.Request, latch string) {
	k.scripts.ReleaseShared(c, latch, r.Owner, r.Lease)
}

// ForceRelease implements hold.Owning.
func (k *Plain) ForceRelease(c *transport.Call) { k.scripts.ForceRelease(c) }

// Inspect implements hold.Owning. A plain lock does not have a queue.
func (k *Plain) Inspect(c *transport.Call, _, _ int64) { k.scripts.Inspect(c) }
