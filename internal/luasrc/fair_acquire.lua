-- Acquires a free fair lock if no owner is queued before this one, or reenters it for
-- its owner; else queues the owner, unless it is queued.
--
-- A deadline is the end of the lease, or the deadline of the waiter before it, plus the owner's own
-- wait.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of waiting owners, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline
-- KEYS[4]   the lock's channel, unused: it never exists, so the script does not run while its slot moves
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   wait of the owner, milliseconds
-- ARGV[4]   lease, milliseconds
-- ARGV[5]   given: a refusal has details; left out: it is a number
-- Replies:  nil if the owner holds the lock now. If it was queued before: the milliseconds that the
--           lock has left, 0 if it is free or never expires. If it is queued now: the milliseconds to
--           the deadline of the waiter before it, or else the lock's remaining time, -1 without expiry,
--           -2 if free; any may be negative. With details: an array of that number; the holder's
--           owner, '' if there is none or the user may not run HKEYS; the next owner in the queue;
--           and this owner's place, from 1, if it is queued now, else 0
-- Effects:  overdue waiters leave the head of the queue; if acquired, the owner leaves the queue,
--           all other deadlines fall by its wait, the count is 1 and the TTL the lease; if reentered,
--           the count rises by one and the TTL is the lease; if queued, the owner is last, and its
--           deadline is now plus the reply plus the wait; a deadline that it had stays
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
