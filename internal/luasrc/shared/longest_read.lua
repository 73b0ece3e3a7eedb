-- Returns what the longest of all readers' holds has left, in milliseconds; 0 or less when
-- none is alive. It looks no further when one has just enough, if that is given. The newest
-- are asked first: they mostly have.
--
-- Uses: hold_count, hold_key
local function longest_read(lock, enough)
    local most, fields = -3, redis.call('HGETALL', lock)
    for i = #fields - 1, 1, -2 do
        for k = hold_count(fields[i + 1]), 1, -1 do
            local left = redis.call('PTTL', hold_key(lock, fields[i], k))
            if left == enough then
                return left
            end
            most = math.max(most, left)
        end
    end
    return most
end
