// Package codec knows every byte that Redlatch shares with Redisson: how owners
// are spelt, which keys and channels belong to a lock, and what messages say. It is
// for programs that look at locks without locking. It is pure: no Redis, no clock, no
// goroutine, and every function is safe for concurrent use.
//
// # One lock, by its names
//
// Everything starts from the mapped name: a redlatch.NameMapper, where one is set, is
// applied to the caller's name once, and the lock's key and all that is derived
// from it come from the result. For a lock named orders:
//
//	orders                                   hash: owner -> count; TTL = lease
//	redisson_lock__channel:{orders}          channel: "0" when it becomes free
//	redisson_lock__channel:{orders}:OWNER    channel: a fair lock calls this waiter
//	redisson_lock_queue:{orders}             list: fair waiters, first in front
//	redisson_lock_timeout:{orders}           sorted set: when a waiter counts as dead
//	redisson_unlock_latch:{orders}:REQUEST   string: outcome of a repeated unlock
//	redisson_lock_token:{orders}             string: the last fencing token
//
// A read/write lock has, in place of the first two:
//
//	orders                                   hash: mode, owner -> count, owner:write -> count
//	{orders}:OWNER:rwlock_timeout:N          string: one hold of a reader; TTL = its lease
//	redisson_rwlock:{orders}                 channel: "0" and "1", when others may try
//
// A semaphore has these, the second only where its permits have ids:
//
//	orders                                   string: how many permits are available
//	{orders}:timeout                         sorted set: id -> when its permit's lease ends
//	redisson_sc:{orders}                     channel: a number, when others may try
//
// The braces keep all of them in one hash slot of a cluster. A name that contains
// an opening brace anywhere gets none added; the names of this kind whose keys come
// apart in a cluster are refused there.
//
// # One hold, by its owner
//
// The hash has one field per owner, a UUID and a number joined by a colon, and
// the field's value counts how often that owner has entered. No client parses
// the owners of others: two owners are the same if their bytes are. [Owner] is
// the shape that Redlatch writes and Redisson's plain locks write too; a field
// of another shape, such as a write lock's, has another meaning and stays a
// string.
//
// # Words
//
//	here                    in Redisson
//	owner                   lock name, holder: getLockName(threadId)
//	Owner.Client            RedissonClient.getId(), the instance id
//	Owner.N                 threadId
//	name, mapped name       getName(), getRawName()
//	lease                   leaseTime; without one, lockWatchdogTimeout
//	wait (fair locks)       threadWaitTime, fairLockWaitTimeout
//	lock channel            getChannelName()
//	queue, timeouts         threadsQueueName, timeoutSetName
//	latch                   unlock latch: getUnlockLatchName(requestId)
//	request id              the id generated for each unlock call
//	"0" message             UNLOCK_MESSAGE
//	count                   getHoldCount()
package codec
