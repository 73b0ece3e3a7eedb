-- Returns what the longest of all readers' holds has left, in milliseconds, and its key; 0 or
-- less when none is alive. It looks no further when one has just enough, if that is given. The
-- newest are asked first: they mostly have.
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
