package contest

import (
	"context"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// redlatchPlain is Redlatch as its README has it: one client, two connections, a
// lease that is renewed. No option is set.
var redlatchPlain = Contestant{
	Name: "redlatch", Role: Own, Waits: true, Renews: true,
	// HELLO, ROLE and PUBSUB ask whether other processes wait, for a turn that takes long.
	Sends: []string{
		"evalsha", "eval", "subscribe", "unsubscribe", "ping", "client|id", "client|info",
		"hello", "role", "pubsub|numsub", "pubsub|shardnumsub",
	},
	Open: openRedlatch(rlock.New),
}

// redlatchCluster is the plain lock on a cluster.
var redlatchCluster = Contestant{
	Name: "redlatch-cluster", Role: Own, Cluster: true, Waits: true, Renews: true,
	Sends: append([]string{"cluster|slots", "cluster|shards"}, redlatchPlain.Sends...),
	Open: func(ctx context.Context, s Settings) (Locker, error) {
		client, err := redlatch.Open(ctx, "redis-cluster://"+s.Addr)
		if err != nil {
			return nil, err
		}
		return &redlatchLocker{Client: client, kind: rlock.New}, nil
	},
}

// redlatchFair is the fair lock of the same client.
var redlatchFair = Contestant{
	Name: "redlatch-fair", Role: Own, Fair: true, Waits: true, Renews: true,
	// TIME, too, belongs to the look-out for waiters that are dead.
	Sends: append([]string{"time"}, redlatchPlain.Sends...),
	Open:  openRedlatch(rfairlock.New),
}

// redlatchAsync is the plain lock, freed by UnlockAsync.
var redlatchAsync = Contestant{
	Name: "redlatch-async", Role: Own, Async: true, Waits: true, Renews: true, Sends: redlatchPlain.Sends,
	Open: func(ctx context.Context, s Settings) (Locker, error) {
		l, err := newRedlatch(ctx, s, rlock.New)
		if err != nil {
			return nil, err
		}
		return asyncLocker{l}, nil
	},
}

// asyncLocker is a client whose Unlock does not wait for the reply.
type asyncLocker struct{ *redlatchLocker }

func (l asyncLocker) Key(name string) Key {
	return &asyncKey{lock: rlock.New(l.Client, name), options: l.options}
}

// asyncKey is the lock, and what becomes of its last release.
type asyncKey struct {
	lock    *rlock.Lock
	options []rlock.Option
	hold    *rlock.Hold
	outcome <-chan error
}

// Lock also returns the error of the release before it, whose reply came first.
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

// redlatchReadWrite is the read/write lock of the same client.
var redlatchReadWrite = Contestant{
	Name: "redlatch-rw", Role: Own, ReadWrite: true, Waits: true, Renews: true, Sends: redlatchPlain.Sends,
	Open: func(ctx context.Context, s Settings) (Locker, error) {
		l, err := newRedlatch(ctx, s, func(c *redlatch.Client, name string) *rlock.Lock {
			return rreadwritelock.New(c, name).Write()
		})
		if err != nil {
			return nil, err
		}
		return redlatchReader{l}, nil
	},
}

// redlatchReader is a client whose locks have readers, too.
type redlatchReader struct{ *redlatchLocker }

func (l redlatchReader) ReadKey(name string) Key {
	return redlatchKey{lock: rreadwritelock.New(l.Client, name).Read(), options: l.options}
}

func openRedlatch(kind func(*redlatch.Client, string) *rlock.Lock) func(context.Context, Settings) (Locker, error) {
	return func(ctx context.Context, s Settings) (Locker, error) {
		l, err := newRedlatch(ctx, s, kind)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
}

func newRedlatch(ctx context.Context, s Settings, kind func(*redlatch.Client, string) *rlock.Lock) (*redlatchLocker, error) {
	client, err := redlatch.Open(ctx, "redis://"+s.Addr, observed()...)
	if err != nil {
		return nil, err
	}
	l := &redlatchLocker{Client: client, kind: kind}
	if s.Lease > 0 {
		l.options = []rlock.Option{rlock.WithLease(s.Lease)}
	}
	return l, nil
}

type redlatchLocker struct {
	*redlatch.Client
	kind    func(*redlatch.Client, string) *rlock.Lock
	options []rlock.Option
}

func (l *redlatchLocker) Key(name string) Key {
	return redlatchKey{lock: l.kind(l.Client, name), options: l.options}
}

func (l *redlatchLocker) RedisKey(name string) string { return name }

type redlatchKey struct {
	lock    *rlock.Lock
	options []rlock.Option
}

func (k redlatchKey) Lock(ctx context.Context) (Held, error) {
	hold, err := k.lock.Lock(ctx, k.options...)
	if err != nil {
		return nil, err
	}
	return hold, nil
}
