// Package rmultilock acquires several locks as one, Redisson's getMultiLock. [New] is for plain locks by
// name, [Of] for locks of any kind. On the server there are only the locks themselves, so programs that use
// any of them exclude each other.
//
//	Lock ──first step──▶ held: some ──…──▶ held: all ──▶ Hold
//	          │               │ refused, context, WithWait, panic, a member is lost
//	          └───────────────┴──▶ the acquired ones are released: none is held
//
//	live ──Unlock──▶ released, all of them
//	  │ ──any of them lost──▶ lost; the others are left to their leases, or to Unlock
//	  │ ──WithMaxHold is over──▶ at its maximum
//	  └ ──Client.Close─▶ closed
//
// # Order
//
// Locks are acquired in one order regardless of the caller's: plain locks by their slot in the cluster, all
// locks of one slot by one script; then the locks of other kinds by key. So holders of this package cannot
// deadlock. Redisson uses the caller's order: with ("a", "b") and ("b", "a") each of two callers holds one
// lock and waits for the other until its time is over. A program that acquires the same locks one by one is
// safe if they are plain and of one slot, since this package holds none while it waits; else it must use the
// same order.
//
// # All or none
//
// Without a cluster all plain locks are of one slot; in a cluster names with one hash tag are, such as
// "{orders}:1" and "{orders}:2". 500 of them cost one round trip, and one more to release. If one is held,
// none is acquired, and the caller waits for that one. Locks that are busy in turns can keep a caller
// waiting: bound the wait by WithWait or a context. A caller does not queue in rlock's local queue of each
// member. With redlatch.WithReplicaSync all locks wait for their replicas together.
//
// # Differences from Redisson
//
//	                                 Redisson                        here
//	order                            the caller's                    one for all programs
//	lease while others are acquired  twice the wait, set again later the real one from the start
//	lock(lease) that has to wait     thousandfold lease              the real one
//	an interrupt, a canceled call    swallowed; locks remain         all are released
//	unlock that fails for one        the rest stays locked           the rest is released
//	a fair or fenced member          its queue, its token expire     they are not changed
//	a lost member                    not detected                    the hold is lost
//
// # No RedLock
//
// This package has no RedLock, Redisson's getRedLock, which holds when most of several independent servers
// have granted it. It cannot keep its promise: holders do not learn that their majority is lost, a paused
// process or a jump of a server's clock breaks it, and Redisson has deprecated it. To survive the loss of a
// server, use a plain lock with redlatch.WithReplicaSync; where work must not be done twice, use a fenced
// lock, package rfencedlock, whose tokens the resource checks.
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

// Member is one of several locks: a *rlock.Lock, including a fair lock and either role of a read/write lock,
// or a *rfencedlock.Lock.
type Member interface {
	// Name returns the lock's name.
	Name() string
	lock
}

type lock = hold.AnyLock

// Lock is several locks as one. It is safe for concurrent use. Errors are *redlatch.LockError with the name
// of the member.
type Lock struct {
	engine *engine.Engine
	steps  []step // in the order of acquisition
	names  []string
	err    error // of invalid members
}

// New returns the plain locks called names as one lock, Redisson's getMultiLock. Repeated names count once.
// It sends nothing. Without names, and with an invalid name, every call returns redlatch.ErrInvalid.
func New(client *redlatch.Client, names ...string) *Lock {
	members := make([]Member, len(names))
	for i, name := range names {
		members[i] = rlock.New(client, name)
	}
	return Of(members...)
}

// Of returns locks of any kind as one lock. Repeated locks count once. It sends nothing. Every call returns
// redlatch.ErrInvalid without locks, with an invalid name, with two kinds or roles of one name, which would
// wait for itself, and with locks of different clients, which have no common order.
func Of(locks ...Member) *Lock {
	l := &Lock{}
	l.err = l.arrange(locks)
	return l
}

// Names returns the names of the locks, each once, in the given order. The caller must not change it.
func (l *Lock) Names() []string { return l.names }

// Lock acquires all locks and waits for them until ctx ends. The hold outlives ctx. Options are those of
// rlock.Lock.Lock for each lock, except that rlock.WithWait is for all together, and rlock.WithOwner gives
// redlatch.ErrInvalid.
//
// Plain locks of one slot are acquired by one EVALSHA, all or none. See the package documentation for the
// order. On an error or a panic the acquired locks are released before Lock returns. A lock whose hold ctx
// proves is reentered.
//
// It returns the errors of rlock.Lock.Lock for the member that was not acquired. If a member was lost while others
// were acquired, such as one with a short fixed lease, Lock returns redlatch.ErrNotAcquired.
func (l *Lock) Lock(ctx context.Context, opts ...rlock.Option) (*Hold, error) {
	return l.acquire(ctx, "lock", opts)
}

// TryLock is like [Lock.Lock] but makes one attempt for each step of the order, and returns
// redlatch.ErrNotAcquired if another owner holds one of the locks. WithWait gives redlatch.ErrInvalid.
func (l *Lock) TryLock(ctx context.Context, opts ...rlock.Option) (*Hold, error) {
	return l.acquire(ctx, "trylock", opts)
}

// Do acquires all locks as [Lock.Lock] does, runs fn and unlocks, even if fn panics. The context of fn is
// [Hold.Context], which ends if a lock is lost. Do returns fn's error, joined with the error of a lost lock
// or a failed unlock.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context) error, opts ...rlock.Option) error {
	h, err := l.Lock(ctx, opts...)
	if err != nil {
		return err
	}
	return hold.Do(ctx, &l.engine.Hooks, engine.Event{Name: l.title(), Kind: "multi"}, h, fn)
}

// Hold is several locks that were acquired as one. It is safe for concurrent use.
type Hold struct {
	lock  *Lock
	group hold.Group
}

// Names returns the names of the locks, as [Lock.Names] does.
func (h *Hold) Names() []string { return h.lock.names }

// Err returns nil while all locks are held, and then an error as rlock.Hold.Err does, with the name of the
// lock that was lost first. The other locks are no longer renewed then, but stay locked until Unlock or the
// end of their leases, to protect work that has not stopped yet. It sends nothing.
func (h *Hold) Err() error { return h.group.Err() }

// Remaining returns how long all locks last without renewal, less the loss margin, 0 if the hold is over.
func (h *Hold) Remaining() time.Duration { return h.group.Remaining() }

// Context returns a context that ends with parent, and when any of the locks is lost, as rlock.Hold.Context
// does. With it each lock of the hold, alone or as one of several, is reentered.
func (h *Hold) Context(parent context.Context) context.Context { return h.group.Context(parent) }

// Token returns the newest fencing token of the hold of a lock, as rfencedlock.Hold.Token does, 0 for kinds
// without tokens and for other locks.
func (h *Hold) Token(member Member) int64 {
	for _, held := range h.group.Holds() {
		if identity(held.Lock()) == identity(hold.Of(member)) {
			return held.Token()
		}
	}
	return 0
}

// Unlock releases all locks concurrently, even if some fail, within one command timeout. The hold's contexts
// end first. It joins the errors, each a *redlatch.LockError as of rlock.Hold.Unlock. Later calls return the
// same. Plain locks of one slot are released by one EVALSHA.
func (h *Hold) Unlock() error { return h.unlock() }

// step is acquired as a whole: plain locks of one slot, or one lock.
type step struct {
	slot    int
	batched bool // they are plain
	members []Member
}

type id struct{ kind, key string }

func identity(l *hold.Lock) id { return id{l.Kind.Name(), l.Kind.Key()} }

// arrange checks the members and sorts them into steps.
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
		inner := hold.Of(m)
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

// split returns the steps in order: plain locks by slot, then the others by key.
func (l *Lock) split(members []Member) []step {
	slots, _ := l.engine.Transport.(transport.Slotter)
	bySlot := map[int]*step{}
	var alone []step
	for _, m := range members {
		inner := hold.Of(m)
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

func byKey(a, b Member) int { return cmp.Compare(hold.Of(a).Kind.Key(), hold.Of(b).Kind.Key()) }
