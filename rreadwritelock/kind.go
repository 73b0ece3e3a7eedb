package rreadwritelock

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hashlock"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/rwqueue"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/transport"
)

// role is what the kinds of readers and writers have in common. It is safe for concurrent use.
type role struct {
	hashlock.Kind
	channel string
}

func newRole(mapped string) role { return role{hashlock.New(mapped), codec.ReadWriteChannel(mapped)} }

// Family is part of hold.Kind: the proofs of both roles count for both.
func (*role) Family() string { return "read-write" }

// Channel is part of acquire.Waitable. All waiters share one.
func (r *role) Channel(any) string { return r.channel }

// Inspected is part of hold.Inspectable.
func (*role) Inspected(answer any) (reply.Inspection, error) { return reply.InspectedReadWrite(answer) }

// reader is the kind of the lock as its readers have it: Redisson's readLock.
type reader struct {
	role
	scripts luasrc.Read
}

// writer is the kind of the lock as its writer has it: Redisson's writeLock.
type writer struct {
	role
	scripts luasrc.Write
}

type capabilities interface {
	hold.Kind
	hold.Role
	hold.Shareable
	hold.Forcible
	hold.Inspectable
	hold.Replicable
	hold.Lockable
}

var (
	_ capabilities  = (*reader)(nil)
	_ capabilities  = (*writer)(nil)
	_ hold.Fielding = (*writer)(nil)
)

// makeReader returns the hold.Make of readers.
func makeReader(heldBack bool) hold.Make {
	return func(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
		r := newRole(mapped)
		k := &reader{r, luasrc.Read{Key: mapped, Channel: r.channel, Publish: e.Publish()}}
		return k, rwqueue.Readers(e, k, heldBack)
	}
}

// makeWriter is the hold.Make of writers.
func makeWriter(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
	r := newRole(mapped)
	k := &writer{r, luasrc.Write{Key: mapped, Channel: r.channel, Publish: e.Publish()}}
	return k, rwqueue.Writers(e, k)
}

// Name is part of acquire.Waitable.
func (*reader) Name() string { return "read" }

// Acquire is part of acquire.Waitable.
func (k *reader) Acquire(c *transport.Call, r *acquire.Request) {
	k.scripts.Acquire(c, r.Owner, r.Lease)
}

// Under is part of hold.Role: a writer may read.
func (*reader) Under(hold.Kind) error { return nil }

// Shares is part of hold.Role.
func (*reader) Shares() bool { return true }

// Reenter is part of hold.Reentrant.
func (k *reader) Reenter(c *transport.Call, r *acquire.Request) {
	k.scripts.Reenter(c, r.Owner, r.Lease, r.Target)
}

// Release is part of hold.Kind.
func (k *reader) Release(c *transport.Call, r *acquire.Request) {
	k.scripts.Release(c, r.Owner, r.Lease, r.Target)
}

// ReleaseShared is part of hold.Shareable.
func (k *reader) ReleaseShared(c *transport.Call, r *acquire.Request, latch string) {
	k.scripts.ReleaseShared(c, latch, r.Owner, r.Lease)
}

// ForceRelease is part of hold.Forcible.
func (k *reader) ForceRelease(c *transport.Call) { k.scripts.ForceRelease(c) }

// Inspect is part of hold.Inspectable.
func (k *reader) Inspect(c *transport.Call, _, _ int64) { k.scripts.Inspect(c) }

// IsLocked is part of hold.Lockable.
func (k *reader) IsLocked(c *transport.Call) { k.scripts.Inspect(c) }

// Locked is part of hold.Lockable: a reader has it, be it the writer, too.
func (*reader) Locked(answer any) (bool, error) {
	in, err := reply.InspectedReadWrite(answer)
	if in.Mode == codec.ModeWrite {
		return len(in.Held) > 1, err
	}
	return in.Mode == codec.ModeRead, err
}

var readRenewal = watchdog.Renewal{Fill: luasrc.FillReadRenew, Renewed: reply.RenewedAt}

// Renewal is part of hold.Kind.
func (*reader) Renewal() *watchdog.Renewal { return &readRenewal }

// Name is part of acquire.Waitable.
func (*writer) Name() string { return "write" }

// Field is part of hold.Fielding.
func (*writer) Field(owner string) string { return codec.WriterField(owner) }

// Acquire is part of acquire.Waitable.
func (k *writer) Acquire(c *transport.Call, r *acquire.Request) {
	k.scripts.Acquire(c, r.Owner, r.Lease)
}

// Under is part of hold.Role: a reader would wait for itself.
func (*writer) Under(hold.Kind) error { return ErrUpgrade }

// Shares is part of hold.Role.
func (*writer) Shares() bool { return false }

// Reenter is part of hold.Reentrant.
func (k *writer) Reenter(c *transport.Call, r *acquire.Request) {
	k.scripts.Reenter(c, r.Owner, r.Lease, r.Target)
}

// Release is part of hold.Kind.
func (k *writer) Release(c *transport.Call, r *acquire.Request) {
	k.scripts.Release(c, r.Owner, r.Lease, r.Target)
}

// ReleaseShared is part of hold.Shareable.
func (k *writer) ReleaseShared(c *transport.Call, r *acquire.Request, latch string) {
	k.scripts.ReleaseShared(c, latch, r.Owner, r.Lease)
}

// ForceRelease is part of hold.Forcible.
func (k *writer) ForceRelease(c *transport.Call) { k.scripts.ForceRelease(c) }

// Inspect is part of hold.Inspectable.
func (k *writer) Inspect(c *transport.Call, _, _ int64) { k.scripts.Inspect(c) }

// IsLocked is part of hold.Lockable.
func (k *writer) IsLocked(c *transport.Call) { k.scripts.Inspect(c) }

// Locked is part of hold.Lockable.
func (*writer) Locked(answer any) (bool, error) {
	in, err := reply.InspectedReadWrite(answer)
	return in.Mode == codec.ModeWrite, err
}
