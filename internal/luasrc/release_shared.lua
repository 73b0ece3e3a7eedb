-- Lowers an owner's count by one, or frees the lock. It is for owners that several processes share. It
-- saves its reply in a latch, so that a retry gets the same reply and does not change anything.
--
-- Its first write succeeds even if the server is out of memory.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the lock's channel
-- KEYS[3]   the latch of this release
-- ARGV[1]   owner
-- ARGV[2]   lease of the remaining holds, milliseconds
-- ARGV[3]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[4]   message
-- ARGV[5]   the latch's time to live, milliseconds
-- Replies:  nil if the owner does not hold the lock; 1 if it is free now; 0 if the owner still holds it;
--           the latch's value if it exists
-- Effects:  none if the latch exists. Otherwise, the count falls by one, and the TTL becomes the lease. If
--           it was the last count, the lock is deleted. A reply other than nil is saved in the latch
-- Messages: if the lock became free, the message on the channel
local lock, channel, latch = KEYS[1], KEYS[2], KEYS[3]
local owner, lease, publish, message, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local before = redis.call('GET', latch)
if before then
    return tonumber(before)
end
local count = redis.call('HGET', lock, owner)
if not count then
    return nil
end
local free = 0
if tonumber(count) > 1 then
    redis.call('PEXPIRE', lock, lease)
    redis.call('HINCRBY', lock, owner, -1)
else
    redis.call('DEL', lock)
    redis.call(publish, channel, message)
    free = 1
end
redis.call('SET', latch, free, 'PX', ttl)
return free
