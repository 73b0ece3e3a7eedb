// Package redlatch is a client for distributed locks in Redis and Valkey. Its locks are the same as
// Redisson's: Go and Java processes can contend for one lock. Pub/sub wakes waiters without polling.
//
//	client, err := redlatch.Open(ctx, "redis://localhost:6379")
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//
//	orders := rlock.New(client, "orders:42")
//	return orders.Do(ctx, func(ctx context.Context) error {
//		return ship(ctx) // ctx ends with cause ErrLost if the lock is lost
//	})
//
// Package rlock makes locks from a [Client]; each other kind has its own package.
// Package embedded runs a server inside the process, for development and tests.
//
// While the server remembers a lock, no two holders believe that they hold it: a hold ends, with its
// contexts, before its lease can. If the server forgets it, as after a failover to a replica without
// the lock, the hold ends at its next renewal. A lease cannot stop a paused process; where a late
// write would corrupt data, the resource must reject it, see package fence. docs/reliability.md has
// all guarantees.
//
// Invalid arguments give [ErrInvalid] and nothing is sent. A nil [Client], Context or function
// panics, except that functions which make a Client return ErrInvalid for a nil argument.
package redlatch
