package list

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

const (
	// absentFor is how long a waiter must be without a subscriber to be called dead: a live one may
	// be so for a moment.
	absentFor = time.Second
	// placesAtOnce is how many places of all queues are looked at before the second look.
	placesAtOnce = 100_000
)

// withDead returns the locks that have waiters without a subscriber, and notes how many.
func (l *lister) withDead(ctx context.Context, locks []*listing.Lock) (dead []*listing.Lock, err error) {
	if len(locks) == 0 {
		return nil, nil
	}
	client, err := cli.Client(ctx, l.from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }() // it only asked
	for len(locks) > 0 {
		n := together(locks)
		absent, err := l.absent(ctx, client, locks[:n], nil)
		if err == nil && len(absent) > 0 {
			if err = inspect.Pause(ctx, absentFor); err == nil {
				absent, err = l.absent(ctx, client, locks[:n], absent)
			}
		}
		if err != nil {
			return nil, err
		}
		for _, lock := range locks[:n] {
			if lock.NotSubscribed = len(absent[lock]); lock.NotSubscribed > 0 {
				dead = append(dead, lock)
			}
		}
		locks = locks[n:]
	}
	return dead, nil
}

// together returns how many of the locks are looked at together: one at least.
func together(locks []*listing.Lock) int {
	places := int64(0)
	for i, lock := range locks {
		if places += min(lock.Queue, inspect.LookedAt); places > placesAtOnce && i > 0 {
			return i
		}
	}
	return len(locks)
}

// absentees are the owners without a subscriber in the queues of locks.
type absentees map[*listing.Lock][]string

// absent looks once, and if among is not nil only for those in it.
func (l *lister) absent(ctx context.Context, client *redlatch.Client, locks []*listing.Lock, among absentees) (absentees, error) {
	found := absentees{}
	for _, lock := range locks {
		if among != nil && among[lock] == nil {
			continue
		}
		owners, err := inspect.Part{Name: lock.Name, First: 1, Last: inspect.LookedAt}.Absent(ctx, client, among[lock])
		switch {
		case errors.Is(err, redlatch.ErrWrongType), errors.Is(err, redlatch.ErrInvalid):
			l.message("lock %q is left out: its queue cannot be read. `redlatch status` says why", lock.Name)
		case err != nil:
			return nil, l.notCounted(err)
		case len(owners) > 0:
			found[lock] = owners
		}
	}
	return found, nil
}

func (l *lister) notCounted(err error) error {
	if errors.Is(err, admin.ErrNotCounted) {
		return cli.Errorf(1, "--dead-waiters: which waiters are dead is unknown: %s", inspect.NotCounted(err))
	}
	return l.from.Problem(err)
}
