package contest

import (
	"context"
	"sync/atomic"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/rsemaphore"
)

// Kinds of semaphores.
const (
	// Permits have ids, and a lease that Redlatch renews.
	Permits = "permits"
	// Counter is a number.
	Counter = "counter"
)

// redlatchPermits are permits with ids, one for each that is inside.
var redlatchPermits = Contestant{
	Name: "redlatch-permits", Role: Own, Semaphore: Permits, Waits: true, Renews: true,
	// TIME is for the clock that leases end by.
	Sends: append([]string{"time"}, redlatchPlain.Sends...),
	Open: openSemaphore(func(c *redlatch.Client, name string, opts []rsemaphore.AcquireOption) semaphore {
		return &permits{rsemaphore.NewExpirable(c, name), opts}
	}, codec.PermitsKey),
}

// redlatchCounter is the semaphore that only counts.
var redlatchCounter = Contestant{
	Name: "redlatch-counter", Role: Own, Semaphore: Counter, Waits: true, Sends: redlatchPlain.Sends,
	Open: openSemaphore(func(c *redlatch.Client, name string, _ []rsemaphore.AcquireOption) semaphore {
		return &counter{rsemaphore.New(c, name)}
	}, func(name string) string { return name }),
}

// semaphore is one of either kind.
type semaphore interface {
	// make makes it with n permits, unless it exists.
	make(ctx context.Context, n int) error
	// Lock takes a permit.
	Lock(ctx context.Context) (Held, error)
}

func openSemaphore(
	kind func(*redlatch.Client, string, []rsemaphore.AcquireOption) semaphore, key func(string) string,
) func(context.Context, Settings) (Locker, error) {
	return func(ctx context.Context, s Settings) (Locker, error) {
		client, err := redlatch.Open(ctx, "redis://"+s.Addr)
		if err != nil {
			return nil, err
		}
		l := &semaphoreLocker{Client: client, kind: kind, key: key, permits: max(s.Permits, 1)}
		if s.Lease > 0 {
			l.options = []rsemaphore.AcquireOption{rsemaphore.WithLease(s.Lease)}
		}
		return l, nil
	}
}

type semaphoreLocker struct {
	*redlatch.Client
	kind    func(*redlatch.Client, string, []rsemaphore.AcquireOption) semaphore
	key     func(name string) string
	permits int
	options []rsemaphore.AcquireOption
}

func (l *semaphoreLocker) Key(name string) Key {
	return &semaphoreKey{semaphore: l.kind(l.Client, name, l.options), permits: l.permits}
}

func (l *semaphoreLocker) RedisKey(name string) string { return l.key(name) }

// semaphoreKey makes the semaphore before it takes the first permit.
type semaphoreKey struct {
	semaphore
	permits int
	made    atomic.Bool
}

func (k *semaphoreKey) Lock(ctx context.Context) (Held, error) {
	if !k.made.Load() {
		if err := k.make(ctx, k.permits); err != nil {
			return nil, err
		}
		k.made.Store(true)
	}
	return k.semaphore.Lock(ctx)
}

// permits are a semaphore's whose permits have ids.
type permits struct {
	semaphore *rsemaphore.Expirable
	options   []rsemaphore.AcquireOption
}

func (p *permits) make(ctx context.Context, n int) error {
	_, err := p.semaphore.TrySetPermits(ctx, n)
	return err
}

func (p *permits) Lock(ctx context.Context) (Held, error) {
	hold, err := p.semaphore.Acquire(ctx, 1, p.options...)
	if err != nil {
		return nil, err
	}
	return heldPermit{hold}, nil
}

type heldPermit struct{ *rsemaphore.Hold }

func (h heldPermit) Unlock() error { return h.Release() }

// counter is a semaphore that only counts.
type counter struct{ semaphore *rsemaphore.Semaphore }

func (c *counter) make(ctx context.Context, n int) error {
	_, err := c.semaphore.TrySet(ctx, n, 0)
	return err
}

func (c *counter) Lock(ctx context.Context) (Held, error) {
	if err := c.semaphore.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return c, nil
}

// Unlock gives one permit back, of whichever was taken.
func (c *counter) Unlock() error { return c.semaphore.Release(context.Background(), 1) }
