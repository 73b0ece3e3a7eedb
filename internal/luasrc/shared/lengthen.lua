-- Raises the TTL of a lock to at least these milliseconds. A lock without expiry stays so.
local function lengthen(lock, millis)
    local left = redis.call('PTTL', lock)
    if left >= 0 and left < millis then
        redis.call('PEXPIRE', lock, millis)
    end
end
