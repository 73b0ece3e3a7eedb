// Package rmultilock acquires several locks as one, all or none, like Redisson's getMultiLock. [New] is for
// plain locks by name, [Of] for locks of any kind.
//
//	both := rmultilock.New(client, "account:7", "account:3")
//	err := both.Do(ctx, transfer) // its context ends if either lock is lost
//
// The locks exclude programs in any language that use one of them. All callers of this package
// acquire locks in the same order, so they cannot deadlock. A program that acquires the same locks
// separately must use that order; see docs/migration.md.
//
// On a single server, or if they share a slot of a cluster, all plain locks are acquired by one script, so
// a waiting caller does not hold any of them. It can starve if some lock is always busy, so limit the wait.
//
// Redisson's getRedLock is not supported; see docs/migration.md.
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

// Member is a lock for [Of]: a *rlock.Lock, including a fair lock and either role of a read/write lock, or a
// *rfencedlock.Lock.
type Member interface {
	// Name returns the lock's name.
	Name() string
	lock
}

type lock = hold.AnyLock

// Lock is a set of locks that are acquired together. All methods are safe for concurrent use. Errors are of
// type *redlatch.LockError, with the name of the member.
type Lock struct {
	engine *engine.Engine
	steps  []step // in the order of acquisition
	names  []string
	err    error  // not nil if members are invalid
	wrong  string // the name of the invalid member
}

// New returns the plain locks called names as one lock. Repeated names count once. It sends nothing. If there
// are no names or one is invalid, every call returns redlatch.ErrInvalid.
func New(client *redlatch.Client, names ...string) *Lock {
	members := make([]Member, len(names))
	for i, name := range names {
		members[i] = rlock.New(client, name)
	}
	return Of(members...)
}

// Of returns locks of any kind as one lock. Repeated locks count once. It sends nothing. Every call returns
// redlatch.ErrInvalid if there are no locks, a name is invalid or used for two kinds or roles, or the locks
// belong to different clients.
func Of(locks ...Member) *Lock {
	l := &Lock{}
	l.wrong, l.err = l.arrange(locks)
	return l
}

// Names returns the names of the locks, each once, in the given order. Do not modify it.
func (l *Lock) Names() []string { return l.names }

// Lock acquires all locks and waits for them until ctx ends. ctx does not bound the hold. Options apply to each lock,
// except that rlock.WithWait applies to all locks together; rlock.WithOwner results in ErrInvalid. If ctx belongs to a
// hold of one of the locks, that lock is re-entered. Lock sends one EVALSHA for all plain locks in the same slot, and
// one for each other lock.
//
// On an error, the acquired locks are released. The error is that of [rlock.Lock.Lock] for the lock that was
// not acquired, or ErrNotAcquired if a lock was lost while the others were being acquired.
func (l *Lock) Lock(ctx context.Context, opts ...rlock.Option) (*Hold, error) {
	return l.acquire(ctx, "lock", opts)
}

// TryLock is like [Lock.Lock], but does not wait: it returns ErrNotAcquired if another owner holds any of
// the locks. WithWait results in ErrInvalid.
func (l *Lock) TryLock(ctx context.Context, opts ...rlock.Option) (*Hold, error) {
	return l.acquire(ctx, "try-lock", opts)
}

// Do acquires all locks as [Lock.Lock] does, calls fn with [Hold.Context], and unlocks, even if fn panics. It
// returns fn's error, joined with ErrLost if a lock was lost, or with Unlock's error.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context) error, opts ...rlock.Option) error {
	h, err := l.Lock(ctx, opts...)
	if err != nil {
		return err
	}
	return hold.Do(ctx, &l.engine.Hooks, engine.Event{Name: l.title(), Kind: "multi"}, h, fn)
}

// Hold is a set of acquired locks. It is lost as soon as one lock is lost. It has no Owner,
// HandOver or LetExpire method, because each lock may have its own owner and lease. All methods are
// safe for concurrent use.
type Hold struct {
	lock  *Lock
	group hold.Group
}

// Names returns the names of the locks, as [Lock.Names] does.
func (h *Hold) Names() []string { return h.lock.names }

// Err returns nil while all locks are held, and afterwards the error of rlock.Hold.Err, with the name of the
// lock that was lost first. The other locks are held until Unlock or their leases expire. It sends nothing.
func (h *Hold) Err() error { return h.group.Err() }

// Remaining returns the shortest remaining lease less the loss margin, or 0 once the hold has ended.
func (h *Hold) Remaining() time.Duration { return h.group.Remaining() }

// Context returns a context for the work that needs the locks, as rlock.Hold.Context does. It ends
// when parent ends or any lock is lost. With it, each of the locks can be re-entered.
func (h *Hold) Context(parent context.Context) context.Context { return h.group.Context(parent) }

// Token returns the latest fencing token of a member, as rfencedlock.Hold.Token does. It returns 0 for kinds
// without tokens and for locks that are not members.
func (h *Hold) Token(member Member) int64 {
	for _, held := range h.group.Holds() {
		if identity(held.Lock()) == identity(hold.Of(member)) {
			return held.Token()
		}
	}
	return 0
}

// Unlock ends the hold and its contexts, and releases all locks concurrently, even if some fail. It needs no
// context and takes at most one command timeout. It joins the errors of rlock.Hold.Unlock, each a
// *redlatch.LockError. Later calls return the first result. It sends one EVALSHA for all plain locks in the
// same slot, and one for each other lock.
func (h *Hold) Unlock() error { return h.unlock() }

// step is acquired as a whole: all plain locks in one slot, or one other lock.
type step struct {
	slot    int
	batched bool // the members are plain locks
	members []Member
}

type id struct{ kind, key string }

func identity(l *hold.Lock) id { return id{l.Kind.Name(), l.Kind.Key()} }

func (l *Lock) arrange(members []Member) (wrong string, err error) {
	if len(members) == 0 {
		return "", fmt.Errorf("%w: no locks", redlatch.ErrInvalid)
	}
	kinds := map[string]string{}
	var kept []Member
	for _, m := range members {
		if m == nil {
			return "", fmt.Errorf("%w: nil lock", redlatch.ErrInvalid)
		}
		inner := hold.Of(m)
		if l.engine == nil {
			l.engine = inner.Engine
		}
		lock := identity(inner)
		kind, twice := kinds[lock.key]
		switch {
		case inner.Err != nil:
			return inner.Name, inner.Err
		case inner.Engine != l.engine:
			return inner.Name, fmt.Errorf("%w: lock %s belongs to another client: all locks must use the same client",
				redlatch.ErrInvalid, limits.Quote(inner.Name))
		case twice && kind != lock.kind:
			return inner.Name, fmt.Errorf("%w: lock %s as both %s and %s lock would wait for itself",
				redlatch.ErrInvalid, limits.Quote(inner.Name), kind, lock.kind)
		case !twice:
			kinds[lock.key] = lock.kind
			kept, l.names = append(kept, m), append(l.names, inner.Name)
		}
	}
	l.steps = l.split(kept)
	return "", nil
}

// split puts plain locks first, by slot, and then the others, by key.
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
