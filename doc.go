// Package redlatch takes the same distributed locks as Redisson, from Go. Go and Java processes
// contend for one lock on one Redis or Valkey with the same keys and messages, and pub/sub wakes
// waiters without polling.
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
// Package rlock makes locks from a [Client], package rfairlock locks that serve waiters in the
// order of arrival. Package embedded runs a server inside the process, for development and tests.
//
// # Bad input
//
// Invalid names, texts, numbers and times give errors that state the problem and repeat only a
// little of the input. Nothing is sent. A nil [Client], Lock, Hold, Context or function panics
// where it is used, as in the standard library. No reply of a server causes a panic.
//
// # Guarantees and limits
//
// While the server remembers a lock, no two holders believe that they hold it: a hold ends, with
// its contexts, before its lease can. If the server forgets a lock, because its key was deleted or
// evicted or a replica that never had it became the master, no client can know in advance; the hold
// then ends at its next renewal, at most a third of the lease later.
//
// A lease cannot stop a paused process, or code that ignores its context. Such a lock keeps two
// workers from doing the same work twice, most of the time at almost no cost: efficiency. Where concurrent writers would
// corrupt something, the resource itself must reject the late one, for instance by a
// token that only grows, see package fence: correctness, which no lock client can provide alone.
package redlatch
