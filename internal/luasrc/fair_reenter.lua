-- Enters a fair lock again for an owner that holds it. For owners that one process
-- alone uses it says where to arrive, and so may run more than once.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of the owners that wait, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline, the time
--           from which it counts as dead
-- KEYS[4]   the lock's channel, unused: it is no key, and so a server whose slot moves
--           runs the script with all keys or not at all
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   lease, milliseconds
-- ARGV[4]   target: the count to arrive at; 0: one more than there is
-- Replies:  nil when the owner does not hold the lock; 1 when it does
-- Effects:  the queue loses its dead, up to the first owner that is alive or has
--           no deadline; the count becomes the target if it was below it, or is
--           one higher, and the time to live the lease if less was left; a lock
--           that the owner does not hold is left as it is, free or not
-- Messages: none
-- Uses:     prune, reenter
local lock, queue, timeouts = KEYS[1], KEYS[2], KEYS[3]
local now, owner, lease, target = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
prune(queue, timeouts, now)
return reenter(lock, owner, lease, target)
