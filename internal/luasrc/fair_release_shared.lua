-- Lowers an owner's count by one, or frees the fair lock. It is for owners that several processes share.
-- It saves its reply in a latch, so that a retry gets the same reply and does not change anything.
--
-- Its first write succeeds even if the server is out of memory.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of waiting owners, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline
-- KEYS[4]   the lock's channel
-- KEYS[5]   the latch of this release
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   lease of the remaining holds, milliseconds
-- ARGV[4]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[5]   message
-- ARGV[6]   the latch's time to live, milliseconds
-- Replies:  nil if another owner holds the lock; 1 if it is free now; 0 if the owner still holds it; 2
--           if it was already free; the latch's value if it exists
-- Effects:  none if the latch exists. Otherwise, overdue waiters are removed from the head of the queue, the
--           count falls by one, and the TTL becomes the lease. If it was the last count, the lock is
--           deleted. A reply other than nil is saved in the latch
-- Messages: if the lock is free now, the message on the channel of the next waiter
-- Uses:     prune, wake
local lock, queue, timeouts, channel, latch = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now, owner, lease = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local publish, message, ttl = ARGV[4], ARGV[5], ARGV[6]
local before = redis.call('GET', latch)
if before then
    return tonumber(before)
end
local head = prune(queue, timeouts, now)
local count = redis.call('HGET', lock, owner)
local outcome = 1
if count and tonumber(count) > 1 then
    redis.call('PEXPIRE', lock, lease)
    redis.call('HINCRBY', lock, owner, -1)
    outcome = 0
elseif count then
    redis.call('DEL', lock)
elseif redis.call('EXISTS', lock) == 1 then
    return nil
else
    redis.call('DEL', lock)
    outcome = 2
end
redis.call('SET', latch, outcome, 'PX', ttl)
if outcome > 0 and head then
    wake(channel, head, publish, message)
end
return outcome
