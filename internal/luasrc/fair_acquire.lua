-- Acquires a fair lock if it is free and no other owner is ahead in the queue, or reenters it if the
-- owner holds it. Otherwise, it adds the owner to the queue unless it is already queued.
--
-- The deadline of a waiter is its own wait after the deadline of the waiter before it or, for the first
-- waiter, after the end of the lease.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of waiting owners, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline
-- KEYS[4]   the lock's channel, unused: it never exists, so the script does not run while its slot is moved
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   wait of the owner, milliseconds
-- ARGV[4]   lease, milliseconds
-- ARGV[5]   given: optional; if it is given, the reply contains details
-- Replies:  nil if the owner holds the lock now. If it was already queued: the remaining milliseconds of
--           the lock, or 0 if it is free or does not expire. If it has been added to the queue: the
--           milliseconds until the deadline of the waiter before it or, without one, the lock's remaining
--           time, -1 if it does not expire, -2 if it is free; all of them may be negative. With details:
--           an array of this number; the holder's owner, or '' if there is none or the user may not run
--           HKEYS; the first owner in the queue; and this owner's place, counting from 1, if it has been
--           added, or 0
-- Effects:  overdue waiters are removed from the head of the queue; if acquired, the owner is removed from
--           the queue, all other deadlines fall by its wait, the count becomes 1 and the TTL the lease; if
--           reentered, the count rises by one and the TTL becomes the lease; if added to the queue, the
--           owner is last, and its deadline is now plus the reply plus the wait; if it was already queued,
--           its deadline does not change
-- Uses:     enqueue, prune, take
local lock, queue, timeouts = KEYS[1], KEYS[2], KEYS[3]
local now, owner, wait, lease, tell = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local head = prune(queue, timeouts, now)
if take(lock, queue, timeouts, head, owner, wait, lease) then
    return nil
end
local left, queued = enqueue(lock, queue, timeouts, now, owner, wait)
if tell then
    return {left, redis.pcall('HKEYS', lock)[1] or '', head or owner, queued}
end
return left
