// Package rreadwritelock is Redisson's read/write lock, RReadWriteLock: several readers hold it
// at a time, or one writer alone. [New] makes it. [Lock.Read] and [Lock.Write] are its two
// roles, each a *rlock.Lock with that type's methods, options and errors.
//
// # States
//
//	          first reader                    first reader of the writer's context
//	free ────────────────────▶ read(n)   ◀─┐  ┌────────────────────────────────────┐
//	 ▲ ▲                        │   ▲      │  │                                    ▼
//	 │ │  the last reader left  │   └──┐   │ written ──────────────────────▶ written and read
//	 │ └────────────────────────┘  more│   │  ▲  │                                  │
//	 │                          readers┘   │  │  │ the writer left      the writer left: downgrade
//	 │                                     └──┼──┼──────────────────────────────────┘
//	 └────────────────────────────────────────┼──┘
//	                  first writer            │
//	free ─────────────────────────────────────┘
//
// A lease that runs out is a holder that left. A reader that crashed is in the way of a writer
// until its own lease is over, whatever other readers do.
//
// # Which context may do what
//
// The context of a hold ([rlock.Hold.Context]) is its proof, for both roles:
//
//	a context of   asks to read                    asks to write
//	a reader       reads again                     ErrUpgrade, at once
//	a writer       reads, under the same owner     writes again, after its other inner holds
//	neither        waits for the writer            waits for all others
//
// A writer's hold and those that read within it end in any order, each with its own Unlock,
// lease and renewal. When the writer's ends first, the lock goes on as a reader's: a downgrade,
// which lets waiting readers in. Readers with one context do not wait for each other; and a
// writer's context does not keep what reads with it from what writes with it. Neither can be
// handed over or left to its lease while the owner has both roles; then it is
// redlatch.ErrReentered.
//
// # Who goes first
//
// There is no queue on the server, and no order between processes. In one process writers come
// one after the other. When a writer has left, the readers that wait come in together, and then
// the next writer. A writer that waits holds new readers of its client back, so that it gets in
// beside any number of them that take turns; see [WithoutWriterPreference]. Readers of other
// processes, and Redisson's, know nothing of it and may keep it out for as long as some of them
// always read.
//
// # Leases of readers
//
// Each reader has a lease of its own, and the lock lasts as long as the longest. Redisson's
// readers set it to their watchdog timeout at each renewal, also when another reader was
// promised more. So a reader's lease that is longer than the client's watchdog timeout, also a
// fixed one of rlock.WithLease, is confirmed every third of that timeout, which mends it. A
// reader whose confirmations do not arrive is told that it has lost the lock before that
// timeout is over ([rlock.Hold.Remaining] counts it). This holds where no program of the fleet
// has a shorter lockWatchdogTimeout than this client.
//
// # Other kinds
//
// A name is that of one kind of lock. A plain lock of the name, RLock in Java, is
// redlatch.ErrWrongType for Lock, TryLock, Do and IsLocked, and admin.Inspect says so. Redisson's
// read/write lock ignores it and adds its fields to it: both have the lock then. The calls that
// only end or go on with a hold change nothing of it: UnlockAs and Resume return
// redlatch.ErrNotHeld, and ForceUnlock false. A key that is no hash is redlatch.ErrWrongType for
// all of them but Resume, which returns redlatch.ErrNotHeld.
//
// IsLocked is about the role: of the reader's it is true while a reader has the lock, also the
// writer as one. ForceUnlock frees the lock only while it is held in that role. A refusal names
// the writer, and no reader.
package rreadwritelock

import (
	"fmt"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/rwqueue"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// ErrUpgrade says that a reader has asked to write with the context of its hold. It would wait
// for itself: unlock the read hold first, or take the lock to write from the beginning. It
// wraps redlatch.ErrInvalid. Nothing was sent.
var ErrUpgrade = fmt.Errorf("%w: a reader cannot become the writer, since it would wait for itself: unlock the read hold first",
	redlatch.ErrInvalid)

// Lock is a read/write lock by name. It holds no owner and no state of its own: any number of
// goroutines may use one Lock, and any number of Locks may be made for one name.
type Lock struct{ read, write *rlock.Lock }

// Option sets something about a read/write lock.
type Option func(*settings)

type settings struct{ passing bool }

// WithoutWriterPreference lets the readers of this Lock in also while a writer of the same
// client waits. Then readers that take turns without a pause can keep a writer out for ever, as
// in Redisson. Default: a writer that waits lets in 32 readers more, or those of 20 ms; others
// wait until the writer had the lock or has left, at least until those that are in have left
// and one second more. So two readers of one client must not wait for each other, as with
// sync.RWMutex; a reader's context may read again at any time.
func WithoutWriterPreference() Option { return func(s *settings) { s.passing = true } }

// New returns the read/write lock called name: Redisson's getReadWriteLock. It sends nothing. A
// name that no lock can have shows as redlatch.ErrInvalid in every call of both roles.
func New(client *redlatch.Client, name string, opts ...Option) *Lock {
	var set settings
	for _, o := range opts {
		if o != nil {
			o(&set)
		}
	}
	l := &Lock{&rlock.Lock{}, &rlock.Lock{}}
	e := engine.EngineOf(client)
	*l.read.Internal() = hold.NewLock(e, name, makeReader(!set.passing))
	*l.write.Internal() = hold.NewLock(e, name, makeWriter)
	return l
}

// Name returns the name that the lock was made with. It sends nothing.
func (l *Lock) Name() string { return l.read.Name() }

// Read returns the lock as its readers have it: any number of owners hold it at a time, and no
// writer does. It has the methods, options and errors of a plain lock; the package
// documentation says where they mean something of their own. It sends nothing, and returns the
// same lock each time.
func (l *Lock) Read() *rlock.Lock { return l.read }

// Write returns the lock as its writer has it: one owner holds it at a time, and no other reads.
// Otherwise as [Lock.Read].
func (l *Lock) Write() *rlock.Lock { return l.write }

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
