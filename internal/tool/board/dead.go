package board

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/rfairlock"
)

const (
	// fronts is of how many queues the first waiters are looked for after a scan.
	fronts = 32
	// counted is of how many waiters in circles the subscribers are counted after a scan.
	counted = 64
	// countWait bounds the counting of subscribers after a scan.
	countWait = 2 * time.Second
)

// errNoTime says that a scan has counted for long enough.
var errNoTime = errors.New("the next scan counts more")

// counter counts how many subscribers waiters of one lock have. An error says that it is not
// known.
type counter func(lock string, owners ...string) ([]int64, error)

// counter returns what counts for the time that a scan has for it.
func (b *Board) counter(ctx context.Context) counter {
	until := time.Now().Add(countWait)
	return func(lock string, owners ...string) ([]int64, error) {
		if time.Now().After(until) {
			return nil, errNoTime
		}
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		return admin.Listeners(ctx, rfairlock.New(b.Source.client, lock), owners...)
	}
}

// findDead looks whether the first waiters of some queues have subscribers: half of them of those
// that had none, and then of others in turn.
func (l *Locks) findDead(m *memory, count counter) {
	var absent, others []*Entry
	for i := range l.Entries {
		e := &l.Entries[i]
		if e.Next == "" || e.Kind == listing.ReadWrite {
			continue
		}
		if _, is := m.seen.presence.known(e.Name, e.Next); is {
			absent = append(absent, e)
		} else {
			others = append(others, e)
		}
	}
	again := turn(absent, &m.absentTurns, max(fronts/2, fronts-len(others)))
	all := slices.Concat(again, turn(others, &m.turns, fronts-len(again)))
	for _, e := range all {
		l.count(m, count, place{e.Name, e.Next})
	}
	for _, e := range slices.Concat(absent, all) {
		if state, _ := m.seen.presence.known(e.Name, e.Next); state == Dead && severity(DeadFront) > severity(e.Trouble) {
			e.Trouble = DeadFront
		}
	}
	l.sort()
}

// turn returns the next n of some.
func turn(some []*Entry, from *int, n int) []*Entry {
	if len(some) <= n {
		*from = 0
		return some
	}
	next := make([]*Entry, 0, n)
	for i := range n {
		next = append(next, some[(*from+i)%len(some)])
	}
	*from = (*from + n) % len(some)
	return next
}

// uncounted notes why subscribers cannot be counted.
func (l *Locks) uncounted(err error) {
	if !errors.Is(err, errNoTime) {
		l.Uncounted = inspect.NotCounted(err)
	}
}
