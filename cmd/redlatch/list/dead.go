package list

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// absentFor is how long a waiter must be without a subscriber to be called dead: a live one may
// be so for a moment.
const absentFor = time.Second

// withDead returns those of the locks that have waiters without a subscriber, and notes how many.
func (l *lister) withDead(ctx context.Context, locks []*listing.Lock) ([]*listing.Lock, error) {
	if len(locks) == 0 {
		return nil, nil
	}
	client, err := cli.Look(ctx, l.from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }() // it only asked
	absent, err := l.absent(ctx, client, locks, nil)
	if err == nil && len(absent) > 0 {
		if err = inspect.Pause(ctx, absentFor); err == nil {
			absent, err = l.absent(ctx, client, locks, absent)
		}
	}
	if err != nil {
		return nil, err
	}
	var dead []*listing.Lock
	for _, lock := range locks {
		if lock.NotSubscribed = len(absent[lock]); lock.NotSubscribed > 0 {
			dead = append(dead, lock)
		}
	}
	return dead, nil
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
		owners, err := inspect.Absent(ctx, client, lock.Name, among[lock])
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
