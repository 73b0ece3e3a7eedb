// Package rreadwritelock provides Redisson's read/write lock, RReadWriteLock: several readers hold
// it at a time, or one writer. [Lock.Read] and [Lock.Write] return its two roles.
//
// The context of a hold ([rlock.Hold.Context]) proves ownership for both roles:
//
//	context of   Read().Lock                   Write().Lock
//	a reader     enters again                  returns ErrUpgrade
//	a writer     enters under the same owner   enters again, after its other inner holds
//	neither      waits for the writer          waits for all others
//
// A writer's hold and its inner reads end in any order. If the writer ends first, the lock becomes
// a reader's, a downgrade that admits waiting readers. While an owner has both roles, HandOver and
// LetExpire return redlatch.ErrReentered.
//
// The server does not queue. In one process, writers take turns; when a writer leaves, all
// waiting readers enter, then the next writer. A waiting writer also holds back new readers of its
// client, see [WithoutWriterPreference]; readers of other processes can keep it out.
//
// Each reader has its own lease. Redisson's renewals can shorten the lock to their watchdog
// timeout, so Redlatch confirms longer leases every third of its own timeout; if confirmations
// fail, the reader loses the lock before that timeout ends ([rlock.Hold.Remaining]). This requires
// that no program has a shorter lockWatchdogTimeout than this client.
//
// Use one kind of lock per name. For a plain lock of the name, Lock, TryLock, Do and IsLocked
// return redlatch.ErrWrongType, UnlockAs and Resume redlatch.ErrNotHeld, and ForceUnlock false.
// IsLocked and ForceUnlock are about one role; a writer that also reads has both. A refusal names
// the writer, never a reader.
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

// ErrUpgrade is returned if a reader's context requests the write lock, which would wait for
// itself. Unlock the read hold first. It wraps redlatch.ErrInvalid; nothing was sent.
var ErrUpgrade = fmt.Errorf("%w: a reader cannot become the writer, since it would wait for itself: unlock the read hold first",
	redlatch.ErrInvalid)

// Lock is a read/write lock. It is safe for concurrent use, and several Locks may have one name.
type Lock struct{ read, write *rlock.Lock }

// Option configures a read/write lock.
type Option func(*settings)

type settings struct{ passing bool }

// WithoutWriterPreference admits this Lock's readers even while a writer of the same client
// waits. Readers that overlap can then keep a writer out forever, as in Redisson. By default a
// waiting writer admits another 32 readers, or the readers of 20 ms. Later readers wait until the writer
// has held the lock or stopped waiting, or until the present readers have left and a second has passed.
// So two readers of one client must not wait for each other, as with sync.RWMutex. A reader's
// context may read again at any time.
func WithoutWriterPreference() Option { return func(s *settings) { s.passing = true } }

// New returns the read/write lock with this name, Redisson's getReadWriteLock. It sends nothing.
// If the name is invalid, every call of both roles returns redlatch.ErrInvalid.
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

// Read returns the read lock: any number of owners hold it at a time, and no writer does. It
// returns the same lock each time.
func (l *Lock) Read() *rlock.Lock { return l.read }

// Write returns the write lock: one owner holds it at a time, and no other reads. It returns the
// same lock each time.
func (l *Lock) Write() *rlock.Lock { return l.write }

// role is the common part of both kinds.
type role struct {
	kind.Hash
	channel string
	scripts luasrc.ReadWrite
}

func newRole(e *engine.Engine, mapped string, r *luasrc.Role) role {
	channel := protocol.ReadWriteChannel(mapped)
	return role{kind.NewHash(mapped), channel, luasrc.ReadWrite{Role: r, Key: mapped, Channel: channel, Publish: e.Publish()}}
}

// Family is shared: the proof of one role counts for the other.
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

var errNoMode = fmt.Errorf("%w: it is a hash that is no read/write lock, such as a plain lock", engine.ErrWrongType)

// state reads the reply to IsLocked. A hash without a mode is an error.
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

// Locked reports whether there is a reader. A writer that reads has two fields.
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
