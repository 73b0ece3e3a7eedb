-- Lowers an owner's count to a target, or frees the fair lock. It is for owners that only one process
-- uses. Because of the target, it may run late or twice and does not need an unlock latch.
--
-- It notifies the next waiter, which stays in the queue until it acquires the lock. It does so even if
-- the lock was already free, because the waiter may not have noticed this yet.
--
-- Its first write succeeds even if the server is out of memory.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of waiting owners, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline
-- KEYS[4]   the lock's channel
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   lease of the remaining holds, milliseconds
-- ARGV[4]   target: the remaining count, 0 to free the lock
-- ARGV[5]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[6]   message
-- Replies:  nil if another owner holds the lock; 1 if it is free now; 0 if the owner still holds it; 2
--           if it was already free
-- Effects:  overdue waiters are removed from the head of the queue; target 0 deletes the lock, regardless of
--           the count; a count above a higher target becomes the target, and the TTL becomes the lease; the
--           lock of another owner does not change
-- Messages: if the lock is free, the message on the channel of the next waiter
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
