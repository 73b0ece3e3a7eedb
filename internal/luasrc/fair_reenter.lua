-- Reenters a fair lock that the owner holds. With a target, it may run twice.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of waiting owners, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline
-- KEYS[4]   the lock's channel, unused: it never exists, so the script does not run while its slot is moved
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   lease, milliseconds
-- ARGV[4]   target: the minimum count afterwards, or 0 to raise it by one
-- Replies:  1, or nil if the owner does not hold the lock
-- Effects:  overdue waiters are removed from the head of the queue; if the owner holds the lock, its count
--           rises to the target, or by one, and the TTL rises to the lease
-- Uses:     prune, reenter
local lock, queue, timeouts = KEYS[1], KEYS[2], KEYS[3]
local now, owner, lease, target = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
prune(queue, timeouts, now)
return reenter(lock, owner, lease, target)
