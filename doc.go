// Package redlatch takes the same distributed locks as Redisson, from Go.
//
// Go and Java processes contend for one lock on one Redis or Valkey, byte for
// byte the same keys and messages, and waiters are woken by pub/sub instead of
// polling.
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
// A [Client] is a connection, an identity and a lifetime. Package rlock makes
// locks from it, package rfairlock locks whose waiters are served in the order of
// arrival. Package embedded runs a server inside the process, for
// development and tests.
//
// # Bad input
//
// A name, a text, a number or a time that makes no sense is an error that says what
// is wrong with it, and repeats no more than a little of it; nothing is sent then.
// What only a mistake in the program can bring about, a nil [Client], Lock, Hold or
// Context, or a nil function to run, panics where it is used, as it does in the
// standard library. Whatever a server answers is an error at worst.
//
// # What is promised
//
// While the server remembers a lock, no two holders believe that they hold it:
// a hold ends, with its contexts, before its lease can. When the server forgets
// a lock, because its key was deleted or evicted or because it failed over to a
// replica that never had it, no client can know in advance; the hold then ends
// at its next renewal, a third of the lease away.
//
// # What is not
//
// A lease cannot stop a process that was paused, or code that does not look at
// its context. A lock of this kind keeps two workers from doing the same work
// twice, most of the time at almost no cost: that is efficiency. Where two at
// once would corrupt something, the resource itself must refuse the late one,
// for instance by a token that only ever grows: that is correctness, and no
// lock client can give it alone.
package redlatch
