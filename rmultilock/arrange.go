package rmultilock

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/transport"
)

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
