-- Reads the holders of a read/write lock, their counts and TTLs at the same time.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel, unused: it never exists, so the script does not run while its slot is moved
-- Replies:  an array of the lock's remaining milliseconds, -1 if it does not expire, -2 if it is free; an
--           array of field, value, field ...; and an array of the remaining milliseconds of the longest
--           read hold of each field's owner, which is negative if it has none. In a hash without a mode,
--           which another program may have written, only a thousand holds are read
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
