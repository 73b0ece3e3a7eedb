-- Lowers an owner's count by one, or frees the lock. For owners that several
-- processes may use: it leaves a latch, so that the same release, sent again,
-- gets the first answer and changes nothing.
--
-- Its first write is one that a server without memory does not refuse.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the lock's channel
-- KEYS[3]   the latch of this release
-- ARGV[1]   owner
-- ARGV[2]   lease for what remains, milliseconds
-- ARGV[3]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[4]   message
-- ARGV[5]   the latch's time to live, milliseconds
-- Replies:  nil when the owner does not hold the lock; 1 when it is free now;
--           0 when the owner holds it still; the latch's value when it is there
-- Effects:  a latch that is there: none. Otherwise the count falls by one and
--           the lease becomes the time to live, or, with the last count, the
--           lock is deleted; the reply becomes the latch
-- Messages: the message on the channel, when the lock became free
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
