package contest

import (
	"context"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
)

var redlatchKinds = []Contestant{
	own(Plain, lockOf(rlock.New)),
	own(Async, asyncLock),
	// The search for dead waiters sends TIME.
	own(Fair, lockOf(rfairlock.New), "time"),
	own(ReadWrite, readWriteLock),
	// Leases are measured with the server's clock, which TIME reads.
	own(Permits, permits, "time"),
	own(Counter, counter),
}

func own(kind Kind, newLocker func(*redlatch.Client, *Settings) Locker, sends ...string) Contestant {
	c := Contestant{Name: "redlatch" + string(kind), Role: Own, Kind: kind, Waits: true, Renews: kind != Counter}
	// A caller sends HELLO, ROLE and PUBSUB to find out whether other processes are waiting.
	c.Sends = append([]string{
		"evalsha", "eval", "subscribe", "unsubscribe", "ping", "client|id", "client|info",
		"hello", "role", "pubsub|numsub", "pubsub|shardnumsub",
	}, sends...)
	c.Open = func(ctx context.Context, s Settings) (Locker, error) {
		client, err := redlatch.Open(ctx, "redis://"+s.Addr, observed()...)
		if err != nil {
			return Locker{}, err
		}
		l := newLocker(client, &s)
		l.Close = client.Close
		if l.RedisKey == nil {
			l.RedisKey = sameKey
		}
		return l, nil
	}
	return c
}

func lockOptions(s *Settings) []rlock.Option {
	if s.Lease == 0 {
		return nil
	}
	return []rlock.Option{rlock.WithLease(s.Lease)}
}

func lockKey(lock *rlock.Lock, s *Settings) Key {
	return func(ctx context.Context) (Held, error) {
		hold, err := lock.Lock(ctx, lockOptions(s)...)
		if err != nil {
			return nil, err
		}
		return hold, nil
	}
}

func lockOf(newLock func(*redlatch.Client, string) *rlock.Lock) func(*redlatch.Client, *Settings) Locker {
	return func(client *redlatch.Client, s *Settings) Locker {
		return Locker{Key: func(name string) Key { return lockKey(newLock(client, name), s) }}
	}
}

func readWriteLock(client *redlatch.Client, s *Settings) Locker {
	return Locker{
		Key:     func(name string) Key { return lockKey(rreadwritelock.New(client, name).Write(), s) },
		ReadKey: func(name string) Key { return lockKey(rreadwritelock.New(client, name).Read(), s) },
	}
}

func asyncLock(client *redlatch.Client, s *Settings) Locker {
	return Locker{Key: func(name string) Key {
		return (&asyncKey{lock: rlock.New(client, name), options: lockOptions(s)}).Lock
	}}
}

type asyncKey struct {
	lock    *rlock.Lock
	options []rlock.Option
	hold    *rlock.Hold
	outcome <-chan error
}

func (k *asyncKey) Lock(ctx context.Context) (Held, error) {
	hold, err := k.lock.Lock(ctx, k.options...)
	if err != nil {
		return nil, err
	}
	if k.hold = hold; k.outcome == nil {
		return k, nil
	}
	return k, <-k.outcome
}

func (k *asyncKey) Unlock() error {
	k.outcome = k.hold.UnlockAsync()
	return nil
}

func permits(client *redlatch.Client, s *Settings) Locker {
	var options []rlock.Option
	if s.Lease > 0 {
		options = []rlock.Option{rlock.WithLease(s.Lease)}
	}
	return Locker{RedisKey: protocol.PermitsKey, Key: func(name string) Key {
		semaphore := rsemaphore.NewExpirable(client, name)
		return prepared(func(ctx context.Context) error {
			_, err := semaphore.TrySetPermits(ctx, max(s.Permits, 1))
			return err
		}, func(ctx context.Context) (Held, error) {
			hold, err := semaphore.Acquire(ctx, 1, options...)
			if err != nil {
				return nil, err
			}
			return heldPermit{hold}, nil
		})
	}}
}

type heldPermit struct{ *rsemaphore.Hold }

func (h heldPermit) Unlock() error { return h.Release() }

func counter(client *redlatch.Client, s *Settings) Locker {
	return Locker{Key: func(name string) Key {
		semaphore := rsemaphore.New(client, name)
		return prepared(func(ctx context.Context) error {
			_, err := semaphore.TrySetPermits(ctx, max(s.Permits, 1), 0)
			return err
		}, func(ctx context.Context) (Held, error) {
			if err := semaphore.Acquire(ctx, 1); err != nil {
				return nil, err
			}
			return heldCount{semaphore}, nil
		})
	}}
}

type heldCount struct{ *rsemaphore.Semaphore }

func (h heldCount) Unlock() error { return h.Release(context.Background(), 1) }

func prepared(prepare func(context.Context) error, lock Key) Key {
	ready := false
	return func(ctx context.Context) (Held, error) {
		if !ready {
			if err := prepare(ctx); err != nil {
				return nil, err
			}
			ready = true
		}
		return lock(ctx)
	}
}
