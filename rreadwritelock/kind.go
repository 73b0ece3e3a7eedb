package rreadwritelock

import (
	"fmt"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/rwqueue"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/transport"
)

// role is what the kinds of readers and writers have in common. It is safe for concurrent use.
type role struct {
	kind.Hash
	channel string
	scripts luasrc.ReadWrite
}

func newRole(e *engine.Engine, mapped string, r *luasrc.Role) role {
	channel := codec.ReadWriteChannel(mapped)
	return role{kind.NewHash(mapped), channel, luasrc.ReadWrite{Role: r, Key: mapped, Channel: channel, Publish: e.Publish()}}
}

// Family is part of hold.Kind: the proofs of both roles count for both.
func (*role) Family() string { return "read-write" }

// Channel is part of acquire.Waitable. All waiters share one.
func (r *role) Channel(any) string                           { return r.channel }
func (*role) Inspected(answer any) (reply.Inspection, error) { return reply.InspectedReadWrite(answer) }

func (r *role) Acquire(c *transport.Call, q *acquire.Request) {
	r.scripts.Acquire(c, q.Owner, q.Lease)
}

func (r *role) Reenter(c *transport.Call, q *acquire.Request) {
	r.scripts.Reenter(c, q.Owner, q.Lease, q.Target)
}

func (r *role) Release(c *transport.Call, q *acquire.Request) {
	r.scripts.Release(c, q.Owner, q.Lease, q.Target)
}

func (r *role) ReleaseShared(c *transport.Call, q *acquire.Request, latch string) {
	r.scripts.ReleaseShared(c, latch, q.Owner, q.Lease)
}

func (r *role) ForceRelease(c *transport.Call)        { r.scripts.ForceRelease(c) }
func (r *role) Inspect(c *transport.Call, _, _ int64) { r.scripts.Inspect(c) }

// errNoMode is the error of an inspection of such a key.
var errNoMode = fmt.Errorf("%w: it is a hash that is no read/write lock, such as a plain lock", engine.ErrWrongType)

// state reads the reply of an inspection. A hash without a mode is an error.
func state(answer any) (reply.Inspection, error) {
	in, err := reply.InspectedReadWrite(answer)
	if err == nil && in.Mode == "" && len(in.Held) > 0 {
		err = errNoMode
	}
	return in, err
}

func (r *role) IsLocked(c *transport.Call) { r.scripts.Inspect(c) }

// reader is the kind of the lock as its readers have it: Redisson's readLock.
type reader struct{ role }

// writer is the kind of the lock as its writer has it: Redisson's writeLock.
type writer struct{ role }

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
		k := &reader{newRole(e, mapped, &luasrc.Reader)}
		return k, rwqueue.Readers(e, k, heldBack)
	}
}

// makeWriter is the hold.Make of writers.
func makeWriter(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
	k := &writer{newRole(e, mapped, &luasrc.Writer)}
	return k, rwqueue.Writers(e, k)
}

func (*reader) Name() string { return "read" }

// Under is part of hold.Role: a writer may read.
func (*reader) Under(hold.Kind) error { return nil }
func (*reader) Shares() bool          { return true }

// Locked is part of hold.Lockable: a reader has it, be it the writer, too.
func (*reader) Locked(answer any) (bool, error) {
	in, err := state(answer)
	if in.Mode == codec.ModeWrite {
		return len(in.Held) > 1, err
	}
	return in.Mode == codec.ModeRead, err
}

var readRenewal = watchdog.Renewal{Fill: luasrc.FillReadRenew, Renewed: reply.RenewedAt}

func (*reader) Renewal() *watchdog.Renewal { return &readRenewal }
func (*writer) Name() string               { return "write" }
func (*writer) Field(owner string) string  { return codec.WriterField(owner) }

// Under is part of hold.Role: a reader would wait for itself.
func (*writer) Under(hold.Kind) error { return ErrUpgrade }
func (*writer) Shares() bool          { return false }

func (*writer) Locked(answer any) (bool, error) {
	in, err := state(answer)
	return in.Mode == codec.ModeWrite, err
}
