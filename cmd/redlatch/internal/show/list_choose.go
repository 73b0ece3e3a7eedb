package show

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

type choice struct {
	pattern string
	kind    string
	stuck   bool // free, but with a queue
	noTTL   bool // held without a lease
	dead    bool // some waiters do not have a subscriber
	locked  bool // deadlocked
	sort    string
	limit   int // 0 means all
}

const (
	byName  = "name"
	byLease = "lease"
	byQueue = "queue"
)

var orders = map[string]func(a, b *inspect.Lock) int{
	byName: func(a, b *inspect.Lock) int { return cmp.Compare(a.Name, b.Name) },
	byLease: func(a, b *inspect.Lock) int {
		return cmp.Or(ends(a).Compare(ends(b)), cmp.Compare(a.Name, b.Name))
	},
	byQueue: func(a, b *inspect.Lock) int {
		return cmp.Or(cmp.Compare(waiting(b), waiting(a)), cmp.Compare(a.Name, b.Name))
	},
}

// ends returns an absolute time, because a scan reads leases at different times.
func ends(l *inspect.Lock) time.Time {
	switch {
	case isFree(l):
		return time.Time{}
	case l.TTL == redlatch.NoTTL:
		return time.Unix(1<<48, 0)
	}
	return l.At.Add(l.TTL)
}

func waiting(l *inspect.Lock) int64 {
	if l.Number != nil {
		return l.Number.Waiters()
	}
	return l.Queue
}

func (c *choice) permits() bool { return c.kind == "" && !c.stuck && !c.noTTL && !c.dead && !c.locked }

func (c *choice) things() string {
	if inspect.Kind(c.kind).IsNumber() {
		return "numbers"
	}
	return "locks"
}

func (c *choice) wants(l *inspect.Lock) bool {
	held := len(l.Holders) > 0
	switch {
	case c.kind != "" && string(l.Kind) != c.kind,
		c.stuck && (held || l.Queue == 0),
		c.noTTL && (!held || l.TTL != redlatch.NoTTL),
		c.dead && l.Queue == 0,
		c.locked && !l.Contended():
		return false
	}
	return true
}

func (c *choice) collects() bool { return c.sort != "" || c.limit > 0 || c.dead || c.locked }

func (c *choice) matching() string {
	said := ""
	if c.kind != "" {
		said = " of kind " + c.kind
	}
	if c.stuck {
		said += " that are free with a queue"
	}
	if c.noTTL {
		said += " without a lease"
	}
	if c.dead {
		said += " with waiters without a subscriber"
	}
	if c.locked {
		said += " in a deadlock"
	}
	if c.pattern != "" {
		said += " that match " + sanitize.Word(c.pattern)
	}
	return said
}

type collection struct {
	order func(a, b *inspect.Lock) int
	limit int // 0 means all
	locks []*inspect.Lock
	total int
}

func (c *choice) collection() *collection {
	return &collection{order: orders[cmp.Or(c.sort, byName)], limit: c.limit}
}

// leastKept is how many locks add keeps even if the limit is lower.
const leastKept = 1024

func (c *collection) add(l *inspect.Lock) error {
	c.total++
	c.locks = append(c.locks, l)
	if c.limit > 0 && len(c.locks) > max(2*c.limit, leastKept) {
		c.first()
	}
	return nil
}

func (c *collection) first() []*inspect.Lock {
	slices.SortFunc(c.locks, c.order)
	if c.limit > 0 && len(c.locks) > c.limit {
		clear(c.locks[c.limit:])
		c.locks = c.locks[:c.limit]
	}
	return c.locks
}

const (
	// absentFor is how long a waiter must have been without a subscriber to count as dead.
	absentFor    = time.Second
	placesAtOnce = 100_000
)

func (l *lister) withDead(ctx context.Context, locks []*inspect.Lock) (dead []*inspect.Lock, err error) {
	if len(locks) == 0 {
		return nil, nil
	}
	client, err := cli.Client(ctx, l.from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
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

func together(locks []*inspect.Lock) int {
	places := int64(0)
	for i, lock := range locks {
		if places += min(lock.Queue, inspect.LookedAt); places > placesAtOnce && i > 0 {
			return i
		}
	}
	return len(locks)
}

type absentees map[*inspect.Lock][]string

func (l *lister) absent(ctx context.Context, client *redlatch.Client, locks []*inspect.Lock, among absentees) (absentees, error) {
	found := absentees{}
	for _, lock := range locks {
		if among != nil && among[lock] == nil {
			continue
		}
		owners, err := inspect.Part{Name: lock.Name, First: 1, Last: inspect.LookedAt}.Absent(ctx, client, among[lock])
		switch {
		case errors.Is(err, redlatch.ErrWrongType), errors.Is(err, redlatch.ErrInvalid):
			l.message("lock %q is skipped: cannot read its queue; `redlatch status %s` shows why", lock.Name, inspect.Args(lock.Name))
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
		return cli.Errorf(1, "--dead-waiters: cannot detect dead waiters: %s", inspect.NotCounted(err))
	}
	return l.from.Problem(err)
}
