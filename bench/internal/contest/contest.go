// Package contest defines the lock clients to benchmark, configured as their documentation
// recommends. Defaults are raised if they would slow a client down for reasons unrelated to locks.
package contest

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Role is a contestant's role in a comparison.
type Role string

const (
	// Own is Redlatch itself.
	Own Role = "own"
	// Peer is another lock client.
	Peer Role = "peer"
	// Limit sends raw commands at full speed, without a lock client.
	Limit Role = "limit"
)

// Kind is a kind of lock. It is also a suffix of names.
type Kind string

// Kinds of locks.
const (
	Plain     Kind = ""
	Fair      Kind = "-fair"
	ReadWrite Kind = "-rw"
	// Async locks are plain locks whose Unlock returns before the reply to the release.
	Async Kind = "-async"
	// Permits belong to a semaphore whose permits have IDs and leases.
	Permits Kind = "-permits"
	// Counter is a semaphore that only counts its permits.
	Counter Kind = "-counter"
)

// PoolSize is the number of connections in a contestant's pool.
const PoolSize = 64

// Settings configure a contestant for one case.
type Settings struct {
	Addr string
	// Lease is a fixed lease, or 0 for the contestant's default.
	Lease   time.Duration
	Permits int
}

// Contestant is a lock client or another program that acquires locks.
type Contestant struct {
	Name   string
	Role   Role
	Kind   Kind
	Waits  bool
	Renews bool
	// Java reports whether the contestant is part of bench/java.
	Java bool
	// Most is the largest number of goroutines; 0 means no limit.
	Most int
	// Sends lists the commands that the client sends, as INFO commandstats names them. Its scripts
	// must not call any of them, because every call counts as a request.
	Sends []string
	// Open connects the client. It is nil for Java contestants and for raw-pipelined.
	Open func(ctx context.Context, s Settings) (Locker, error)
}

// Locker is a connected client. Its functions are safe for concurrent use.
type Locker struct {
	Key, ReadKey func(name string) Key
	// RedisKey returns the key that exists on the server while name is held.
	RedisKey func(name string) string
	Close    func() error
}

// Key acquires a lock for one goroutine. It waits until the lock is free or ctx ends.
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
