// Package rmultilock takes several locks as one: Redisson's getMultiLock. [New] is for plain
// locks by name, [Of] for locks of any kind. On the server there is nothing but the locks
// themselves, as if each had been taken alone; all programs that use any of them take turns.
//
//	Lock ──first step──▶ held: some ──…──▶ held: all ──▶ Hold
//	          │               │ refused, context, WithWait, panic, a member is lost
//	          └───────────────┴──▶ what was taken is given back: none is held
//
//	live ──Unlock──▶ released, all of them
//	  │ ──any of them lost──▶ lost; the others are left to their leases, or to Unlock
//	  │ ──WithMaxHold is over──▶ at its maximum
//	  └ ──Client.Close─▶ closed
//
// # One order
//
// The locks are taken in an order of their own, whatever order the caller gives: plain locks by
// their slot in the cluster, all those of one slot at once; then the locks of other kinds, by
// their key. So no two holders of this package can wait for each other. Redisson takes them in
// the order of the caller: with ("a", "b") here and ("b", "a") there each has one and waits for
// the other until its time runs out, and then both begin again, for as long as they meet. A
// program that takes the same locks one by one, in Java or Go, is safe beside this package where
// all keys are in one slot and the locks are plain, since this package holds none while it waits;
// else it must use the same order.
//
// # All or none
//
// Plain locks of one slot are taken by one script: 500 of them cost one round trip, and one more
// to free them. Without a cluster all plain locks are of one slot; in a cluster names with one
// hash tag are, such as "{orders}:1" and "{orders}:2". While one of them is held by another owner
// none is taken, and the caller waits for that one. So locks that are always busy, each at
// another time, can keep a caller out: WithWait or a context bounds the wait. In one process a
// caller that waits for several plain locks does not stand in the queue of rlock for each of them.
//
// With redlatch.WithReplicaSync the replicas of all locks are waited for at once, when all are
// held.
//
// # What is different from Redisson's
//
//	                                 Redisson                        here
//	order                            the caller's                    one for all programs
//	lease while others are taken     twice the wait, set anew later  the real one from the start
//	lock(lease) that has to wait     thousandfold lease              the real one
//	an interrupt, a cancelled call   swallowed; locks stay behind    all are given back
//	unlock that fails for one        the rest stays locked           the rest is given back
//	a fair or fenced member          its queue, its token expire     they are left alone
//	a member that is lost            the holder does not learn it    the hold is over
//
// # No RedLock
//
// There is no RedLock here, Redisson's getRedLock, which holds when most of several independent
// servers have granted it. It promises more than it can keep: its holders are not told when their
// majority is lost, a pause of the process or a jump of a server's clock breaks it, and Redisson
// itself has deprecated it. To survive the loss of a server take a plain lock with
// redlatch.WithReplicaSync; where work must not be done twice, a fenced lock, package rfencedlock,
// whose tokens the resource checks.
package rmultilock
