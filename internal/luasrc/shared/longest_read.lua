-- Returns what the longest of all readers' holds has left, in milliseconds; 0 or less when
-- none is alive.
--
-- Uses: hold_count, hold_key
local function longest_read(lock)
    local most, fields = -3, redis.call('HGETALL', lock)
    for i = 1, #fields, 2 do
        for k = hold_count(fields[i + 1]), 1, -1 do
            most = math.max(most, redis.call('PTTL', hold_key(lock, fields[i], k)))
        end
    end
    return most
end
