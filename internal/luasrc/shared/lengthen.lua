-- Raises the TTL of a lock to at least millis. It does not change a lock that does not expire.
local function lengthen(lock, millis)
    local left = redis.call('PTTL', lock)
    if left >= 0 and left < millis then
        redis.call('PEXPIRE', lock, millis)
    end
end
