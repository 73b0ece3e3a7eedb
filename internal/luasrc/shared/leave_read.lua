-- Ends all holds of a reader, whose number is count, and completes the release (see end_read).
--
-- Uses: end_read, hold_key
local function leave_read(lock, channel, mode, owner, count, publish, message)
    local fields, left = redis.call('HLEN', lock) - 1, -3
    if fields == 1 and count == 1 and mode == 'read' then
        redis.call('DEL', lock, hold_key(lock, owner, 1))
        redis.call(publish, channel, message)
        return 1
    end
    for k = 1, count do
        local key = hold_key(lock, owner, k)
        if fields > 17 then
            left = math.max(left, redis.call('PTTL', key))
        end
        redis.call('DEL', key)
    end
    redis.call('HDEL', lock, owner)
    return end_read(lock, channel, mode, publish, message, fields, left)
end
