-- Lowers an owner's count to a target, or frees the lock. It is for owners that only one process uses.
-- Because of the target, it may run late or twice and does not need an unlock latch.
--
-- Its first write succeeds even if the server is out of memory.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the lock's channel
-- ARGV[1]   owner
-- ARGV[2]   lease of the remaining holds, milliseconds
-- ARGV[3]   target: the remaining count, 0 to free the lock
-- ARGV[4]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[5]   message
-- Replies:  nil if the owner does not hold the lock; 1 if it is free now; 0 if the owner still holds it
-- Effects:  target 0 deletes the lock, regardless of the count; a count above a higher target becomes the
--           target, and the TTL the lease; otherwise nothing changes
-- Messages: if the lock became free, the message on the channel
local lock, channel = KEYS[1], KEYS[2]
local owner, lease, target, publish, message = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local count = redis.call('HGET', lock, owner)
if not count then
    return nil
end
if tonumber(target) > 0 then
    if tonumber(count) > tonumber(target) then
        redis.call('PEXPIRE', lock, lease)
        redis.call('HSET', lock, owner, target)
    end
    return 0
end
redis.call('DEL', lock)
redis.call(publish, channel, message)
return 1
