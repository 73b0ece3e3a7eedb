// Package redlatch is a client for distributed locks in Redis and Valkey. Its locks are the same as
// Redisson's: Go and Java processes can contend for one lock.
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
// Package rlock provides the plain lock, and packages rfairlock, rreadwritelock, rfencedlock and
// rmultilock provide the other kinds. Package rsemaphore limits concurrency, rlatch waits for a count,
// and leader elects a leader. Package embedded runs a server inside the process, for development and
// tests.
//
// While the server keeps a lock, at most one holder believes that it holds the lock: a hold and its
// contexts end before the lease expires. If the server loses the lock, as in a failover to a
// replica without it, the hold ends at its next renewal. A lease cannot stop a paused process; if a
// late write would corrupt data, the resource must reject it; see package fence.
// docs/reliability.md lists all guarantees.
//
// Functions return [ErrInvalid] for invalid arguments and send nothing. They panic if a [Client],
// Context or function is nil, except that functions that return a Client return ErrInvalid.
package redlatch
