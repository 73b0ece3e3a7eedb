-- Acquires a fair lock if it is free and no other owner is ahead in the queue, or reenters it if the
-- owner holds it. It never adds the owner to the queue.
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
-- Replies:  nil if the owner holds the lock now, and 1 otherwise. With details, an array instead of 1: the
--           remaining milliseconds of the lock, -1 if it does not expire, -2 if it is free; and the
--           holder's owner, or '' if there is none or the user may not run HKEYS
-- Effects:  overdue waiters are removed from the head of the queue; if acquired, the owner is removed from
--           the queue, all other deadlines fall by its wait, the count becomes 1 and the TTL the lease; if
--           reentered, the count rises by one and the TTL becomes the lease
-- Uses:     prune, take
local lock, queue, timeouts = KEYS[1], KEYS[2], KEYS[3]
local now, owner, wait, lease, tell = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local head = prune(queue, timeouts, now)
if take(lock, queue, timeouts, head, owner, wait, lease) then
    return nil
end
if tell then
    return {redis.call('PTTL', lock), redis.pcall('HKEYS', lock)[1] or ''}
end
return 1
