-- Lowers an owner's count to a target, or frees the lock. For owners that one
-- process alone uses: since it says where to arrive and not how far to go, it
-- may run late or more than once, and so needs no unlock latch.
--
-- Its first write is one that a server without memory does not refuse.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the lock's channel
-- ARGV[1]   owner
-- ARGV[2]   lease for what remains, milliseconds
-- ARGV[3]   target: the count that shall remain, 0 to free the lock
-- ARGV[4]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[5]   message
-- Replies:  nil when the owner does not hold the lock; 1 when it is free now;
--           0 when the owner holds it still
-- Effects:  target 0 deletes the lock, whatever the count; a higher target
--           becomes the count, with the lease as time to live, if the count was
--           above it; otherwise nothing changes
-- Messages: the message on the channel, when the lock became free
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
