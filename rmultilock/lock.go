package rmultilock

import (
	"context"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/rlock"
)

// Member is a lock that can be one of several: a *rlock.Lock, so also a fair lock and either role
// of a read/write lock, or a *rfencedlock.Lock. No other types have its methods.
type Member interface {
	// Name returns the name that the lock was made with.
	Name() string
	// Internal is for this module.
	Internal() *hold.Lock
}

// Lock is several locks as one. It holds no owner and no state of its own: any number of
// goroutines may use one Lock, and any number of Locks may be made of the same locks. Errors are
// *redlatch.LockError, which name the member that they are about; see there for what errors.Is
// tells apart.
type Lock struct {
	engine *engine.Engine
	steps  []step // in the order in which they are taken
	names  []string
	err    error // why the members cannot be used
}

// New returns the plain locks called names as one lock: Redisson's getMultiLock of getLock for
// each name. A name that is there twice counts once. It sends nothing. Without a name, and with a
// name that no lock can have, each call gives redlatch.ErrInvalid.
func New(client *redlatch.Client, names ...string) *Lock {
	members := make([]Member, len(names))
	for i, name := range names {
		members[i] = rlock.New(client, name)
	}
	return Of(members...)
}

// Of returns locks of any kind as one lock. A lock that is there twice counts once. It sends
// nothing. Each call gives redlatch.ErrInvalid without a lock, with a name that no lock can have,
// with two kinds or roles under one name, since such a lock would wait for itself, and with locks
// of different clients: of several servers there is no order that all programs know.
func Of(locks ...Member) *Lock {
	l := &Lock{}
	l.err = l.arrange(locks)
	return l
}

// Names returns the names of the locks, each once, in the order in which they were given. It
// sends nothing. The caller must not change it.
func (l *Lock) Names() []string { return l.names }

// Lock takes all locks and waits for them as long as it must. ctx bounds the wait and nothing
// else: the hold outlives it. It takes an option of package rlock as rlock.Lock.Lock does, for
// each of the locks: the lease is the real one from the start, and rlock.WithWait is for all
// together. rlock.WithOwner gives redlatch.ErrInvalid.
//
// Plain locks of one slot, on a server without slots all plain locks, are taken by one EVALSHA,
// all or none: while it waits for one of them it holds none of them. The package documentation
// has the order of the others. On an error, and when anything panics, what was taken is given
// back before Lock returns.
//
// A context of a hold of any of the locks proves that hold: that lock is entered again.
//
// Errors are those of rlock.Lock.Lock, of the member that could not be taken. A member that was
// lost while others were taken, such as one with a short fixed lease, is redlatch.ErrNotAcquired.
func (l *Lock) Lock(ctx context.Context, opts ...rlock.Option) (*Hold, error) {
	return l.acquire(ctx, "lock", opts)
}

// TryLock takes all locks if each of them is free, with one attempt for each step of the order.
// It returns redlatch.ErrNotAcquired when another owner holds one, and then holds none. WithWait
// gives redlatch.ErrInvalid. Otherwise as [Lock.Lock].
func (l *Lock) TryLock(ctx context.Context, opts ...rlock.Option) (*Hold, error) {
	return l.acquire(ctx, "trylock", opts)
}

// Do takes all locks as [Lock.Lock] does, runs fn and unlocks, also when fn panics. The context
// that fn gets is [Hold.Context]: it ends when any of the locks is lost. Do returns fn's error;
// when a lock was lost or could not be unlocked, that error is joined to it.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context) error, opts ...rlock.Option) error {
	h, err := l.Lock(ctx, opts...)
	if err != nil {
		return err
	}
	return hold.Do(ctx, l.subject(), h, fn)
}

// subject is what Do runs a function under, for the observer.
func (l *Lock) subject() hold.Subject {
	return hold.Subject{Engine: l.engine, About: engine.DoStarted{Name: l.title(), Kind: "multi"}}
}

// Hold is several locks that were acquired as one, until they are given up or one of them is
// lost. All methods are safe for concurrent use, by any goroutine.
type Hold struct {
	lock  *Lock
	group hold.Group
}

// Names returns the names of the locks, as [Lock.Names] does.
func (h *Hold) Names() []string { return h.lock.names }

// Err returns nil while all locks are held, and afterwards why not, as rlock.Hold.Err does, with
// the name of the lock that was lost first. When one is lost all are over; the others are not
// renewed any more, and stay locked until Unlock or for the rest of their leases, so that work
// that has not stopped yet keeps others out as far as it can. It asks the clocks and sends
// nothing.
func (h *Hold) Err() error { return h.group.Err() }

// Remaining returns how long the hold lasts if no lock is renewed any more, less the loss margin:
// the least of all; 0 when it is over.
func (h *Hold) Remaining() time.Duration { return h.group.Remaining() }

// Context returns a context that ends when parent does and when any of the locks is lost, as
// rlock.Hold.Context does. It proves the hold of each lock: with it a lock of the hold, alone or
// as one of several, is entered again.
func (h *Hold) Context(parent context.Context) context.Context { return h.group.Context(parent) }

// Token returns the newest fencing token of the hold of a lock, as rfencedlock.Hold.Token does, 0
// for kinds without tokens and for a lock that is none of the hold's. It sends nothing.
func (h *Hold) Token(member Member) int64 {
	for _, held := range h.group.Holds() {
		if identity(held.Lock()) == identity(member.Internal()) {
			return held.Token()
		}
	}
	return 0
}

// Unlock releases all locks at the same time, also when one of them fails, and wakes their waiters.
// It takes one command timeout at most. The hold's contexts end before anything is sent. The errors
// of all are joined, each a *redlatch.LockError; see rlock.Hold.Unlock for what they say. Later calls
// do nothing and return the same. Plain locks of one slot are freed by one EVALSHA.
func (h *Hold) Unlock() error { return h.unlock() }
