-- Raises the count of an owner that holds the lock to a target, or by one if the target is 0, and raises
-- the TTL to the lease. Returns 1, or nil if the owner does not hold the lock.
local function reenter(lock, owner, lease, target)
    local count = redis.call('HGET', lock, owner)
    if not count then
        return nil
    end
    if target == 0 then
        redis.call('HINCRBY', lock, owner, 1)
    elseif tonumber(count) < target then
        redis.call('HSET', lock, owner, target)
    end
    local left = redis.call('PTTL', lock)
    if left >= 0 and left < tonumber(lease) then
        redis.call('PEXPIRE', lock, lease)
    end
    return 1
end
