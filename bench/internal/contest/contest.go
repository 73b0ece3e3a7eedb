// Package contest has the contestants: the lock clients that are measured, each
// behind the same Locker, set up as its own documentation says.
//
// What is particular to a contestant, such as how it waits, is written where it is
// defined, and no peer is set up to be slow: where its defaults would hold it back
// for reasons that have nothing to do with locks, such as a pool of three
// connections, it gets what the others have.
package contest

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Role says what a contestant is compared as.
type Role string

// Roles of contestants.
const (
	// Own is Redlatch itself.
	Own Role = "own"
	// Peer is another lock client.
	Peer Role = "peer"
	// Limit is no lock client: raw commands, as fast as they go.
	Limit Role = "limit"
)

// Kind is a kind of lock, as the name of a contestant ends.
type Kind string

// Kinds of locks.
const (
	Plain Kind = ""
	// Fair locks serve waiters in the order of arrival.
	Fair Kind = "-fair"
	// ReadWrite locks have readers and writers.
	ReadWrite Kind = "-rw"
	// Async locks are plain locks whose Unlock returns before the reply to the release.
	Async Kind = "-async"
	// Cluster locks are plain locks on a cluster: Settings.Addr has several addresses, with commas between
	// them.
	Cluster Kind = "-cluster"
	// Permits are a semaphore's. They have ids, and a lease that Redlatch renews.
	Permits Kind = "-permits"
	// Counter is a semaphore that is a number.
	Counter Kind = "-counter"
)

// PoolSize is how many connections a contestant with a pool may use.
const PoolSize = 64

// Settings are what a case asks of a contestant.
type Settings struct {
	// Addr is the server's address, host:port.
	Addr string
	// Lease is how long locks are held at most, not renewed. 0 means the
	// contestant's own default, renewed where it renews.
	Lease time.Duration
	// Permits is how many a semaphore has, 0 for one.
	Permits int
}

// Contestant is one way to take locks.
type Contestant struct {
	// Name is what tables call it, Role what it is compared as.
	Name string
	Role Role
	Kind Kind
	// Waits says that a lock that is held can be waited for.
	Waits bool
	// Renews says that it renews its leases by itself.
	Renews bool
	// Java says that it runs in a JVM, bench/java, and Open is nil.
	Java bool
	// Most is the largest number of goroutines that it can be measured with; 0
	// means any.
	Most int
	// Sends are the commands it sends, as INFO commandstats calls them. None of them may
	// also be called within its scripts, so that requests can be distinguished from the
	// calls of scripts. A test looks at both.
	Sends []string
	// Open connects it. It is nil for Java contestants and raw-pipelined.
	Open func(ctx context.Context, s Settings) (Locker, error)
}

// Locker is a connected client. Its functions are safe for concurrent use.
type Locker struct {
	// Key returns the lock called name, for one goroutine. ReadKey returns it for a goroutine that reads,
	// and is nil for a lock without readers.
	Key, ReadKey func(name string) Key
	// RedisKey returns the key that exists on the server while name is held.
	RedisKey func(name string) string
	// Close disconnects. Holds and waiters are gone by then.
	Close func() error
}

// Key is one goroutine's handle of a lock: the function that acquires it.
type Key func(ctx context.Context) (Held, error)

// Lock waits for the lock until ctx ends.
func (k Key) Lock(ctx context.Context) (Held, error) { return k(ctx) }

// Held is an acquired lock.
type Held interface {
	// Unlock releases it.
	Unlock() error
}

// sameKey is RedisKey of clients that use the lock's name as the key.
func sameKey(name string) string { return name }

// All returns every contestant, Redlatch first.
func All() []Contestant { return slices.Concat(redlatchKinds, peers, redissonKinds, limits) }

// Find returns the contestant called name.
func Find(name string) (Contestant, error) {
	for _, c := range All() {
		if c.Name == name {
			return c, nil
		}
	}
	return Contestant{}, fmt.Errorf("no contestant is called %q", name)
}
