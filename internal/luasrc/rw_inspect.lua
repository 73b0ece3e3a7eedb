-- Reads the holders of a read/write lock, their counts and TTLs at one moment.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel, unused: it never exists, so the script does not run while its slot moves
-- Replies:  an array of the lock's remaining milliseconds, -1 without expiry, -2 if free; an array
--           of field, value, field ...; and an array of the milliseconds that the longest read hold of
--           each field's owner has left, below 0 if it has none. Of a hash without a mode, which may be
--           another program's with many large numbers, only a thousand holds are read
-- Uses:     hold_count, hold_key
local lock, lefts, asks = KEYS[1], {}, 1000
local fields = redis.call('HGETALL', lock)
for i = 1, #fields, 2 do
    if fields[i] == 'mode' and (fields[i + 1] == 'read' or fields[i + 1] == 'write') then
        asks = math.huge
    end
end
for i = 1, #fields, 2 do
    local most, count = -2, math.min(hold_count(fields[i + 1]), asks)
    for k = 1, count do
        most = math.max(most, redis.call('PTTL', hold_key(lock, fields[i], k)))
    end
    asks = asks - count
    lefts[#lefts + 1] = most
end
return {redis.call('PTTL', lock), fields, lefts}
