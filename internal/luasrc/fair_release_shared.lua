-- Lowers an owner's count by one, or frees the fair lock. For owners that several
-- processes may use: it leaves a latch, so that the same release, sent again, gets
-- the first answer and changes nothing.
--
-- Its first write is one that a server without memory does not refuse.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of the owners that wait, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline, the time
--           from which it counts as dead
-- KEYS[4]   the lock's channel; a waiter's own is that, a colon and the waiter
-- KEYS[5]   the latch of this release
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   lease for what remains, milliseconds
-- ARGV[4]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[5]   message
-- ARGV[6]   the latch's time to live, milliseconds
-- Replies:  nil when another holds the lock; 1 when it is free now; 0 when the
--           owner holds it still; 2 when nobody held it; the latch's value when it
--           is there
-- Effects:  a latch that is there: none. Otherwise the queue loses its dead, up to
--           the first owner that is alive or has no deadline, the count falls by
--           one and the lease becomes the time to live, or, with the last count,
--           the lock is deleted; a reply other than nil becomes the latch
-- Messages: the message on the channel of the next in the queue, if there is one,
--           when the lock became free or was free
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
if not count and redis.call('EXISTS', lock) == 0 then
    outcome = 2
elseif not count then
    return nil
elseif tonumber(count) > 1 then
    redis.call('PEXPIRE', lock, lease)
    redis.call('HINCRBY', lock, owner, -1)
    outcome = 0
else
    redis.call('DEL', lock)
end
redis.call('SET', latch, outcome, 'PX', ttl)
if outcome > 0 and head then
    wake(channel, head, publish, message)
end
return outcome
