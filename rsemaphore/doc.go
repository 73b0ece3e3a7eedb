// Package rsemaphore is Redisson's semaphores: so many callers at a time as there are permits, in
// all processes together. [NewExpirable] makes one whose permits come back when their holder
// dies: RPermitExpirableSemaphore in Java. [New] makes one that only counts, RSemaphore, whose
// permits are lost when their holder dies: take it only where Java programs have it already.
//
// # Permits with ids
//
//	            Acquire                     granted
//	caller ───────────────▶ asks, or waits ─────────▶ live ──Release──▶ given back
//	                             │ gave up             │ ──LetExpire──▶ left to its lease
//	                             ▼                     │ ──a permit lost, or not renewed──▶ lost
//	                         no permits                └ ──maximum──▶ left to its lease, or Release
//
// One call takes n permits, all of them or none, and its [Hold] has an id for each. The watchdog
// renews their leases together until Release. A process that dies leaves them for one lease;
// the next attempt of any client gives them back. Redisson does not renew permits: one without
// a lease stays away for ever when its holder dies, and one with a lease is lost when that is
// over, however alive the holder. To Redisson's programs a renewed permit is one with a lease.
//
// When one permit of a hold is lost, since a client has released its id or its key was deleted,
// the whole hold is, and the others are given back. There is no re-entry: a context of a hold
// ends with it and proves nothing. A goroutine that has the only permit and asks for another
// waits for itself.
//
// # How many there are
//
// [Expirable.TrySetPermits] makes the semaphore, [Expirable.SetPermits] changes the number while
// permits are out. A semaphore that was never set has none, and is waited for. More permits
// than there are is [ErrTooMany], at once. The permits that are out and those available are
// together never more than was set, with these exceptions, which are Redisson's: AddPermits
// adds; and the key of the number may be deleted, or evicted, and set anew, while permits are
// out.
//
// # Who goes first
//
// The callers of one client are served in the order of their calls. One that waits for many
// permits does not keep those behind it from permits that are too few for it: see
// [WithStrictOrder]. Between processes there is no order. A release wakes one waiter for each
// permit, also among Redisson's asynchronous ones, of which its own wakes one in all. Redisson's
// threads that wait for several permits can take the wake-up of those that wait for one, by
// whichever client the permit is released; Redlatch's do not.
//
// # Clocks
//
// The end of a lease stands on the server in milliseconds since 1970, by the clock of the client
// that set it, and each client compares it with its own. A client whose clock is ahead by more
// than what a permit has left gives it to another while it is held; of a renewed permit two
// thirds of the lease are left at all times. Keep clocks in step, or use
// redlatch.WithServerTime, where no Redisson takes part. A clock that is off by more than a
// second is logged.
//
// # The counter
//
// The number is all that there is: it tells neither the holders of permits nor how many are out. A process that
// dies keeps its permits; [Semaphore.Add] mends that, by hand. A reply that is lost is
// redlatch.ErrUncertain, for an acquire and for a release: the counter cannot tell what has
// happened. No call is sent twice. redlatch.WithReplicaSync does nothing for it.
package rsemaphore
