// Package contest defines the measured lock clients, set up as their documentation says. Defaults
// that would slow a peer for reasons unrelated to locks are raised.
package contest

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Role is the part of a contestant in a comparison.
type Role string

const (
	// Own is Redlatch itself.
	Own Role = "own"
	// Peer is another lock client.
	Peer Role = "peer"
	// Limit is raw commands at full speed, without a lock client.
	Limit Role = "limit"
)

// Kind is a kind of lock and a suffix for names.
type Kind string

// Kinds of locks.
const (
	Plain     Kind = ""
	Fair      Kind = "-fair"
	ReadWrite Kind = "-rw"
	// Async locks are plain locks whose Unlock returns before the reply to the release.
	Async Kind = "-async"
	// Cluster locks are plain locks on a cluster, with comma-separated addresses.
	Cluster Kind = "-cluster"
	// Permits belong to a semaphore with IDs and renewed leases.
	Permits Kind = "-permits"
	// Counter is a semaphore without IDs.
	Counter Kind = "-counter"
)

// PoolSize is the number of connections in a contestant's pool.
const PoolSize = 64

// Settings are a case's settings for a contestant.
type Settings struct {
	Addr string
	// Lease is a fixed lease, or 0 for the contestant's default, which it may renew.
	Lease time.Duration
	// Permits is the size of a semaphore; 0 means one.
	Permits int
}

// Contestant is one way to take locks.
type Contestant struct {
	Name string
	Role Role
	Kind Kind
	// Waits reports whether callers can wait.
	Waits bool
	// Renews reports whether the client renews leases.
	Renews bool
	// Java contestants run in a JVM, bench/java, and have no Open.
	Java bool
	// Most is the largest number of goroutines that the client can be measured with; 0 means no
	// limit.
	Most int
	// Sends lists the commands that the client sends, by their names in INFO commandstats. Its
	// scripts must not call any of these commands, because the benchmark counts them as requests.
	Sends []string
	// Open connects the client. It is nil for Java contestants and raw-pipelined.
	Open func(ctx context.Context, s Settings) (Locker, error)
}

// Locker is a connected client. Its functions are safe for concurrent use.
type Locker struct {
	// ReadKey is nil unless there are readers.
	Key, ReadKey func(name string) Key
	// RedisKey returns the key that exists on the server while name is held.
	RedisKey func(name string) string
	Close    func() error
}

// Key acquires the lock for one goroutine and waits until ctx ends.
type Key func(ctx context.Context) (Held, error)

// Held is an acquired lock.
type Held interface {
	Unlock() error
}

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
	return Contestant{}, fmt.Errorf("no contestant is named %q", name)
}
