package repair

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rfairlock"
)

// AbsentFor is how long a waiter must be without a subscriber to be evicted, unless the user
// says. A live one that reconnects has none for a moment.
const AbsentFor = 3 * time.Second

// Evict evicts one waiter from the queue of a fair lock.
type Evict struct {
	Target
	// Name is the lock's.
	Name string
	// Owner is the waiter, as it stands in the queue.
	Owner string
	// Absent is how long the waiter must be without a subscriber; with 0 it is looked at once.
	Absent time.Duration
	// EvenIfAlive evicts it at once although it has a subscriber, or that is unknown.
	EvenIfAlive bool
}

// Run does it. The error is a *Refusal when the waiter is alive, not known to be dead, or not in
// the queue.
func (e *Evict) Run(ctx context.Context) (*admin.Eviction, error) {
	out, err := e.run(ctx)
	return out, e.refused(err)
}

func (e *Evict) run(ctx context.Context) (*admin.Eviction, error) {
	if err := e.CheckIsLock(ctx, e.Name); err != nil {
		return nil, err
	}
	lock := rfairlock.New(e.Client, e.Name)
	if e.EvenIfAlive {
		return admin.ForceEvict(ctx, lock, e.Owner)
	}
	if e.Absent > 0 {
		counts, err := admin.Listeners(ctx, lock, e.Owner)
		switch {
		case err != nil:
			return nil, err
		case counts[0] > 0:
			return nil, admin.ErrWaiterAlive
		}
		if err := inspect.Pause(ctx, e.Absent); err != nil {
			return nil, err
		}
	}
	return admin.Evict(ctx, lock, e.Owner)
}

// refused returns an error with the reason and what to do.
func (e *Evict) refused(err error) error {
	shown, other := sanitize.Word(e.Owner), (*inspect.NotLock)(nil)
	switch {
	case errors.As(err, &other):
		return refusef(RefusedKind, "%s", other)
	case errors.Is(err, admin.ErrWaiterAlive):
		return refusef(RefusedAlive, "lock %q: the channel of %s has a subscriber, so the waiter is alive and stays in the queue", e.Name, shown).
			with("--even-if-alive evicts it all the same; it then queues anew, as the last")
	case errors.Is(err, admin.ErrNotCounted):
		return refusef(RefusedUnknown, "lock %q: whether %s is alive is unknown: %s", e.Name, shown, inspect.NotCounted(err)).
			with("If you know that it is dead, use --even-if-alive")
	case errors.Is(err, admin.ErrNotQueued):
		return refusef(RefusedAbsent, "lock %q: %s is not in the queue", e.Name, shown).with("`redlatch status` shows the queue")
	}
	return err
}
