// Package rreadwritelock provides Redisson's read/write lock (getReadWriteLock), which several
// readers or one writer can hold. It costs more than package rlock, so use it only if many callers
// read concurrently. [Lock.Read] and [Lock.Write] return the two roles, each used like a plain
// lock.
//
//	catalogue := rreadwritelock.New(client, "catalogue")
//	hold, err := catalogue.Read().Lock(ctx)
//
// It has the same guarantees as package rlock. With the context of a writer's hold, the writer can also
// read; if its reads outlive the write hold, the lock is downgraded and admits waiting readers. The
// write lock cannot be acquired with the context of a reader's hold; see [ErrUpgrade].
//
// The server does not queue callers. In one process, writers are served in order, and a waiting writer
// holds back new readers; see [WithoutWriterPreference]. Overlapping readers in other processes can
// starve a writer, so limit its wait with rlock.WithWait.
//
// Use only one kind of lock per name: if a plain lock with the same name is held, Lock returns
// redlatch.ErrWrongType. docs/reliability.md describes how Redisson's readers shorten each other's
// leases.
package rreadwritelock

import (
	"fmt"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/rwqueue"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// ErrUpgrade is returned if the write lock is requested with a reader's context, which would deadlock:
// unlock the read hold first. It wraps redlatch.ErrInvalid. Nothing was sent.
var ErrUpgrade = fmt.Errorf("%w: cannot upgrade a read hold to a write hold: unlock the read hold first",
	redlatch.ErrInvalid)

// Lock is a read/write lock. It is safe for concurrent use.
type Lock struct{ read, write *rlock.Lock }

// Option configures a read/write lock.
type Option func(*settings)

type settings struct{ passing bool }

// WithoutWriterPreference admits this Lock's readers even while a writer of the same client is waiting,
// so that readers can starve the writer, as in Redisson. By default a waiting writer admits another 32
// readers, or the readers that arrive within 20 ms. Later readers wait until the writer has held the
// lock or stopped waiting, or for a second after the current readers have left. So two readers of one
// client must not wait for each other, as with sync.RWMutex. With a reader's context, the read lock can
// always be acquired again.
func WithoutWriterPreference() Option { return func(s *settings) { s.passing = true } }

// New returns the read/write lock with this name. It sends nothing. If the name is invalid, every call
// for either role returns redlatch.ErrInvalid.
func New(client *redlatch.Client, name string, opts ...Option) *Lock {
	var set settings
	for _, o := range opts {
		if o != nil {
			o(&set)
		}
	}
	l := &Lock{&rlock.Lock{}, &rlock.Lock{}}
	e := engine.EngineOf(client)
	*hold.Of(l.read) = hold.NewLock(e, name, func(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
		k := &reader{newRole(e, mapped, &luasrc.Reader)}
		return k, rwqueue.Readers(e, k, !set.passing)
	})
	*hold.Of(l.write) = hold.NewLock(e, name, func(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
		k := &writer{newRole(e, mapped, &luasrc.Writer)}
		return k, rwqueue.Writers(e, k)
	})
	return l
}

// Name returns the name given to New.
func (l *Lock) Name() string { return l.read.Name() }

// Read returns the read lock, which any number of owners can hold. Its IsLocked and ForceUnlock
// apply to readers only.
func (l *Lock) Read() *rlock.Lock { return l.read }

// Write returns the write lock, which one owner can hold while no other owner reads. Its IsLocked
// and ForceUnlock apply to the writer, which may also read.
func (l *Lock) Write() *rlock.Lock { return l.write }

type role struct {
	kind.Hash
	channel string
	scripts luasrc.ReadWrite
}

func newRole(e *engine.Engine, mapped string, r *luasrc.Role) role {
	channel := protocol.ReadWriteChannel(mapped)
	return role{kind.NewHash(mapped), channel, luasrc.ReadWrite{Role: r, Key: mapped, Channel: channel, Publish: e.Publish()}}
}

// Family lets a hold of one role prove the other.
func (*role) Family() string                                 { return "read-write" }
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
func (r *role) IsLocked(c *transport.Call)            { r.scripts.Inspect(c) }

var errNoMode = fmt.Errorf("%w: the hash is not a read/write lock; it may be a plain lock", engine.ErrWrongType)

// state returns an error for a hash without a mode.
func state(answer any) (reply.Inspection, error) {
	in, err := reply.InspectedReadWrite(answer)
	if err == nil && in.Mode == "" && len(in.Held) > 0 {
		err = errNoMode
	}
	return in, err
}

type (
	reader struct{ role } // Redisson's readLock
	writer struct{ role } // Redisson's writeLock
)

var (
	_ hold.Owning = (*reader)(nil)
	_ hold.Owning = (*writer)(nil)
)

func (*reader) Name() string { return "read" }
func (*reader) Under() error { return nil }
func (*reader) Shares() bool { return true }

// A writer that also reads has two fields.
func (*reader) Locked(answer any) (bool, error) {
	in, err := state(answer)
	if in.Mode == protocol.ModeWrite {
		return len(in.Held) > 1, err
	}
	return in.Mode == protocol.ModeRead, err
}

var readRenewal = watchdog.Renewal{Fill: luasrc.FillReadRenew, Renewed: reply.RenewedAt}

func (*reader) Renewal() *watchdog.Renewal { return &readRenewal }

func (*writer) Name() string              { return "write" }
func (*writer) Field(owner string) string { return protocol.WriterField(owner) }
func (*writer) Under() error              { return ErrUpgrade }

func (*writer) Locked(answer any) (bool, error) {
	in, err := state(answer)
	return in.Mode == protocol.ModeWrite, err
}
