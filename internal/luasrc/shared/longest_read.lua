-- Returns the TTL of the longest hold of all readers, which is 0 or negative if none is alive, and its key.
-- If enough is given, the search ends at a hold with exactly this TTL. It begins with the newest holds,
-- which usually have it.
--
-- Uses: hold_count, hold_key
local function longest_read(lock, enough)
    local most, longest, fields = -3, nil, redis.call('HGETALL', lock)
    for i = #fields - 1, 1, -2 do
        for k = hold_count(fields[i + 1]), 1, -1 do
            local key = hold_key(lock, fields[i], k)
            local left = redis.call('PTTL', key)
            if left == enough then
                return left, key
            end
            if left > most then
                most, longest = left, key
            end
        end
    end
    return most, longest
end
