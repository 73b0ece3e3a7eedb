package hashlock

import (
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/transport"
)

// Kind is the part of a kind. It is safe for concurrent use.
type Kind struct{ key string }

// New returns the part of the lock at key.
func New(key string) Kind { return Kind{key} }

// Key is part of acquire.Waitable.
func (k Kind) Key() string { return k.key }

// Decode is part of acquire.Waitable.
func (Kind) Decode(answer any) (acquire.Outcome, error) {
	granted, ttl, err := reply.Acquired(answer)
	if granted || err != nil {
		return acquire.Outcome{Granted: granted}, err
	}
	r := reply.Refused(answer)
	return acquire.Outcome{TTL: ttl, Holder: r.Holder, Free: r.Free, Foreign: r.Foreign, Head: r.Head, Queued: r.Position > 0, Position: r.Position}, nil
}

// LookForeign is part of acquire.Foreigner.
func (k Kind) LookForeign(c *transport.Call) { luasrc.FillForeign(c, k.key) }

// Foreign is part of acquire.Foreigner.
func (Kind) Foreign(answer any) (field string, foreign bool) {
	field, foreign, err := reply.Foreign(answer)
	return field, foreign && err == nil
}

// Released is part of hold.Kind.
func (Kind) Released(answer any) (reply.ReleaseOutcome, error) { return reply.Released(answer) }

// Reentered is part of hold.Reentrant.
func (Kind) Reentered(answer any) (bool, error) { return reply.Reentered(answer) }

// Forced is part of hold.Forcible.
func (Kind) Forced(answer any) (bool, error) { return reply.Forced(answer) }

// Inspected is part of hold.Inspectable.
func (Kind) Inspected(answer any) (reply.Inspection, error) { return reply.Inspected(answer) }

// Replicate is part of hold.Replicable.
func (k Kind) Replicate(c *transport.Call, owner any) { luasrc.FillReplicate(c, k.key, owner) }

// Replicated is part of hold.Replicable.
func (Kind) Replicated(answer any) (bool, error) { return reply.Holds(answer) }

var renewal = watchdog.Renewal{Fill: luasrc.FillRenew, Renewed: reply.RenewedAt}

// Renewal is part of hold.Kind: one script for all of them.
func (Kind) Renewal() *watchdog.Renewal { return &renewal }
