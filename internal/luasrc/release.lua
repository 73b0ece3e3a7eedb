-- Lowers an owner's count to a target, or frees the lock. For owners that one
-- process alone uses: since it says where to arrive and not how far to go, it
-- may run late or more than once, and so needs no unlock latch.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the lock's channel
-- ARGV[1]   owner
-- ARGV[2]   target: the count that shall remain, 0 to free the lock
-- ARGV[3]   lease for what remains, milliseconds
-- ARGV[4]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[5]   message
-- Replies:  nil when the owner does not hold the lock; 1 when it is free now;
--           0 when the owner holds it still
-- Effects:  target 0 deletes the lock, whatever the count; a higher target
--           becomes the count, with the lease as time to live, if the count was
--           above it; otherwise nothing changes
-- Messages: the message on the channel, when the lock became free
local lock, owner = KEYS[1], ARGV[1]
local count = redis.call('HGET', lock, owner)
if not count then
    return nil
end
local target = tonumber(ARGV[2])
if target > 0 then
    if tonumber(count) > target then
        redis.call('HSET', lock, owner, ARGV[2])
        redis.call('PEXPIRE', lock, ARGV[3])
    end
    return 0
end
redis.call('DEL', lock)
redis.call(ARGV[4], KEYS[2], ARGV[5])
return 1
