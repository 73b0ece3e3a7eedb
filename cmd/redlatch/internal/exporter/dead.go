package exporter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/rfairlock"
)

const (
	// placesOfQueue is how many places of a queue are asked about: the first ones, for which
	// all others wait.
	placesOfQueue = 200
	// placesOfAll is how many places of all queues are.
	placesOfAll = 20_000
	// channelsAtOnce is how many channels one PUBSUB asks about.
	channelsAtOnce = 1000
)

// waiter is a place in a queue.
type waiter struct {
	lock, owner string
	group       int
}

// queues are the places that are asked about.
type queues struct{ waiters []waiter }

// add takes the places of a lock in, and returns how many of its queue are left out.
func (q *queues) add(l *listing.Lock, group int) (leftOut int64) {
	some := l.Places[:min(len(l.Places), placesOfAll-len(q.waiters))]
	for _, owner := range some {
		q.waiters = append(q.waiters, waiter{l.Name, owner, group})
	}
	return l.Queue - int64(len(some))
}

// absentees are the waiters that have no subscriber.
type absentees map[waiter]bool

// findDead counts the waiters without a subscriber at this look and at the last one. A live one
// may have none for a moment.
func (l *look) findDead(ctx context.Context) (notCounted, err error) {
	absent, err := l.withoutSubscriber(ctx, l.queues.waiters)
	if errors.Is(err, admin.ErrNotCounted) {
		l.figures.Unchecked += int64(len(l.queues.waiters))
		l.absent = nil
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	for w := range absent {
		if l.absent[w] {
			l.figures.Groups[w.group].Dead++
		}
	}
	l.absent = absent
	return nil, nil
}

// withoutSubscriber returns the waiters without a subscriber. First the master alone is asked, a
// thousand at a time; then, about those it knows none of, each replica as well, because
// Redisson's may listen there.
func (l *look) withoutSubscriber(ctx context.Context, waiters []waiter) (absentees, error) {
	if len(waiters) == 0 {
		return nil, nil
	}
	conn, err := l.Server.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // it only asked
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var suspects []waiter
	for some := range slices.Chunk(waiters, channelsAtOnce) {
		channels := make([]string, len(some))
		for i, w := range some {
			channels[i] = codec.OwnerChannel(w.lock, w.owner)
		}
		counts, err := connect.Listening(ctx, conn, channels...)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case connect.Denied(err):
			return nil, fmt.Errorf("%w: %w", admin.ErrNotCounted, err)
		case err != nil:
			return nil, l.Server.Problem(err)
		}
		for i, n := range counts {
			if n == 0 {
				suspects = append(suspects, some[i])
			}
		}
	}
	return l.everywhere(ctx, suspects)
}

// everywhere returns those of the suspects that have no subscriber on the master and on any
// replica. Those of one lock follow each other.
func (l *look) everywhere(ctx context.Context, suspects []waiter) (absentees, error) {
	if len(suspects) == 0 {
		return nil, nil
	}
	client, err := l.Server.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()  // it only asked
	engine.EngineOf(client).AnyName = true // a queue may have a name that no client of Redlatch can use
	absent := absentees{}
	for len(suspects) > 0 {
		lock, n := suspects[0].lock, 0
		var owners []string
		for ; n < len(suspects) && suspects[n].lock == lock; n++ {
			owners = append(owners, suspects[n].owner)
		}
		counts, err := listeners(ctx, client, lock, owners)
		switch {
		case errors.Is(err, redlatch.ErrInvalid): // no lock of that name works in a cluster
			l.figures.Unchecked += int64(n)
		case err != nil:
			return nil, err
		}
		for i := range counts {
			if counts[i] == 0 {
				absent[suspects[i]] = true
			}
		}
		suspects = suspects[n:]
	}
	return absent, nil
}

func listeners(ctx context.Context, client *redlatch.Client, lock string, owners []string) ([]int64, error) {
	return admin.Listeners(ctx, rfairlock.New(client, lock), owners...)
}
