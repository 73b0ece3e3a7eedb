-- Lets a lock last for some milliseconds at least. One without a time to live stays so.
local function lengthen(lock, millis)
    local left = redis.call('PTTL', lock)
    if left >= 0 and left < millis then
        redis.call('PEXPIRE', lock, millis)
    end
end
