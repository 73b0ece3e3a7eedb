-- Enters a lock again for an owner that holds it. For owners that one process
-- alone uses it says where to arrive, and so may run more than once.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- ARGV[1]   lease, milliseconds
-- ARGV[2]   owner
-- ARGV[3]   target: the count to arrive at; 0: one more than there is
-- Replies:  nil when the owner does not hold the lock; 1 when it does
-- Effects:  the count becomes the target if it was below it, or is one higher, and
--           the time to live the lease if less was left; a lock that the owner does
--           not hold is left as it is, free or not
-- Messages: none
local lock, owner = KEYS[1], ARGV[2]
local count = redis.call('HGET', lock, owner)
if not count then
    return nil
end
local target = tonumber(ARGV[3])
if target == 0 then
    redis.call('HINCRBY', lock, owner, 1)
elseif tonumber(count) < target then
    redis.call('HSET', lock, owner, target)
end
local left = redis.call('PTTL', lock)
if left >= 0 and left < tonumber(ARGV[1]) then
    redis.call('PEXPIRE', lock, ARGV[1])
end
return 1
