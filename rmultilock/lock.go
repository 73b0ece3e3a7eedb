// Package rmultilock takes several locks as one: Redisson's getMultiLock. [New] is for plain
// locks by name, [Of] for locks of any kind. On the server there is nothing but the locks
// themselves, as if each had been taken alone; all programs that use any of them take turns.
//
//	Lock ──first step──▶ held: some ──…──▶ held: all ──▶ Hold
//	          │               │ refused, context, WithWait, panic, a member is lost
//	          └───────────────┴──▶ what was taken is given back: none is held
//
//	live ──Unlock──▶ released, all of them
//	  │ ──any of them lost──▶ lost; the others are left to their leases, or to Unlock
//	  │ ──WithMaxHold is over──▶ at its maximum
//	  └ ──Client.Close─▶ closed
//
// # One order
//
// The locks are taken in an order of their own, whatever order the caller gives: plain locks by
// their slot in the cluster, all those of one slot at once; then the locks of other kinds, by
// their key. So no two holders of this package can wait for each other. Redisson takes them in
// the order of the caller: with ("a", "b") here and ("b", "a") there each has one and waits for
// the other until its time runs out, and then both begin again, for as long as they meet. A
// program that takes the same locks one by one, in Java or Go, is safe beside this package where
// all keys are in one slot and the locks are plain, since this package holds none while it waits;
// else it must use the same order.
//
// # All or none
//
// Plain locks of one slot are taken by one script: 500 of them cost one round trip, and one more
// to free them. Without a cluster all plain locks are of one slot; in a cluster names with one
// hash tag are, such as "{orders}:1" and "{orders}:2". While one of them is held by another owner
// none is taken, and the caller waits for that one. So locks that are always busy, each at
// another time, can keep a caller out: WithWait or a context bounds the wait. In one process a
// caller that waits for several plain locks does not stand in the queue of rlock for each of them.
//
// With redlatch.WithReplicaSync the replicas of all locks are waited for at once, when all are
// held.
//
// # What is different from Redisson's
//
//	                                 Redisson                        here
//	order                            the caller's                    one for all programs
//	lease while others are taken     twice the wait, set anew later  the real one from the start
//	lock(lease) that has to wait     thousandfold lease              the real one
//	an interrupt, a cancelled call   swallowed; locks stay behind    all are given back
//	unlock that fails for one        the rest stays locked           the rest is given back
//	a fair or fenced member          its queue, its token expire     they are left alone
//	a member that is lost            the holder does not learn it    the hold is over
//
// # No RedLock
//
// There is no RedLock here, Redisson's getRedLock, which holds when most of several independent
// servers have granted it. It promises more than it can keep: its holders are not told when their
// majority is lost, a pause of the process or a jump of a server's clock breaks it, and Redisson
// itself has deprecated it. To survive the loss of a server take a plain lock with
// redlatch.WithReplicaSync; where work must not be done twice, a fenced lock, package rfencedlock,
// whose tokens the resource checks.
package rmultilock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
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
	return hold.Do(ctx, hold.Subject{Engine: l.engine, About: engine.DoStarted{Name: l.title(), Kind: "multi"}}, h, fn)
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

// step is what is taken at a time: plain locks of one slot, or one lock.
type step struct {
	slot    int
	batched bool // they are plain
	members []Member
}

// id is which lock a member is.
type id struct{ kind, key string }

func identity(l *hold.Lock) id { return id{l.Kind.Name(), l.Kind.Key()} }

// arrange checks the members and brings them into the order in which all programs take them:
// plain locks by slot, which are taken at once; then the others by key.
func (l *Lock) arrange(members []Member) error {
	if len(members) == 0 {
		return fmt.Errorf("%w: no locks", redlatch.ErrInvalid)
	}
	kinds := map[string]string{}
	var kept []Member
	for _, m := range members {
		if m == nil {
			return fmt.Errorf("%w: a nil lock", redlatch.ErrInvalid)
		}
		inner := m.Internal()
		if l.engine == nil {
			l.engine = inner.Engine
		}
		lock := identity(inner)
		kind, twice := kinds[lock.key]
		switch {
		case inner.Err != nil:
			return inner.Err
		case inner.Engine != l.engine:
			return fmt.Errorf("%w: the lock %s is of another client: locks of several servers have no order that all programs know",
				redlatch.ErrInvalid, limits.Quote(inner.Name))
		case twice && kind != lock.kind:
			return fmt.Errorf("%w: the lock %s as a %s and a %s lock would wait for itself",
				redlatch.ErrInvalid, limits.Quote(inner.Name), kind, lock.kind)
		case !twice:
			kinds[lock.key] = lock.kind
			kept, l.names = append(kept, m), append(l.names, inner.Name)
		}
	}
	l.steps = l.split(kept)
	return nil
}

// split makes steps of the members.
func (l *Lock) split(members []Member) []step {
	slots, _ := l.engine.Transport.(transport.Slotter)
	bySlot := map[int]*step{}
	var alone []step
	for _, m := range members {
		inner := m.Internal()
		if _, plain := inner.Kind.(*kind.Plain); !plain {
			alone = append(alone, step{members: []Member{m}})
			continue
		}
		slot := 0
		if slots != nil {
			slot = slots.Slot(inner.Kind.Key())
		}
		if bySlot[slot] == nil {
			bySlot[slot] = &step{slot: slot, batched: true}
		}
		bySlot[slot].members = append(bySlot[slot].members, m)
	}
	var steps []step
	for _, s := range bySlot {
		steps = append(steps, *s)
		slices.SortFunc(s.members, byKey)
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.slot, b.slot) })
	slices.SortFunc(alone, func(a, b step) int { return byKey(a.members[0], b.members[0]) })
	return append(steps, alone...)
}

func byKey(a, b Member) int { return cmp.Compare(a.Internal().Kind.Key(), b.Internal().Kind.Key()) }
