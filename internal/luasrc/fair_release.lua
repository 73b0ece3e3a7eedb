-- Lowers an owner's count to a target, or frees the fair lock. For owners that
-- one process alone uses: since it says where to arrive and not how far to go, it
-- may run late or more than once, and so needs no unlock latch.
--
-- The next in the queue is told, and nobody else. It leaves the queue by itself
-- when it takes the lock. It is also told when the lock was gone already: nobody
-- may have noticed that yet.
--
-- Its first write is one that a server without memory does not refuse.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of the owners that wait, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline, the time
--           from which it counts as dead
-- KEYS[4]   the lock's channel; a waiter's own is that, a colon and the waiter
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   lease for what remains, milliseconds
-- ARGV[4]   target: the count that shall remain, 0 to free the lock
-- ARGV[5]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[6]   message
-- Replies:  nil when another holds the lock; 1 when it is free now; 0 when the
--           owner holds it still; 2 when nobody held it
-- Effects:  the queue loses its dead, up to the first owner that is alive or has
--           no deadline; target 0 deletes the lock, whatever the count; a higher
--           target becomes the count, with the lease as time to live, if the count
--           was above it; the lock of another does not change
-- Messages: the message on the channel of the next in the queue, if there is one,
--           when the lock became free or was free
-- Uses:     prune, wake
local lock, queue, timeouts, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, owner, lease, target = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local publish, message = ARGV[5], ARGV[6]
local head = prune(queue, timeouts, now)
local count = redis.call('HGET', lock, owner)
local outcome = 1
if count and tonumber(target) > 0 then
    if tonumber(count) > tonumber(target) then
        redis.call('PEXPIRE', lock, lease)
        redis.call('HSET', lock, owner, target)
    end
    return 0
elseif count then
    redis.call('DEL', lock)
elseif redis.call('EXISTS', lock) == 0 then
    outcome = 2
else
    return nil
end
if head then
    wake(channel, head, publish, message)
end
return outcome
