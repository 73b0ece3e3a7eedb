-- Reads who holds a read/write lock, how often, and for how long, at one moment.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- Replies:  an array of the milliseconds that the lock has left, -1 when it never expires,
--           -2 when it is free; of an array of its fields and their values in turn; and of
--           an array of the milliseconds that the longest hold of each field's owner as a
--           reader has left, below 0 when it has none
-- Effects:  none
-- Messages: none
-- Uses:     hold_count, hold_key
local lock, lefts = KEYS[1], {}
local fields = redis.call('HGETALL', lock)
for i = 1, #fields, 2 do
    local most = -2
    for k = 1, hold_count(fields[i + 1]) do
        most = math.max(most, redis.call('PTTL', hold_key(lock, fields[i], k)))
    end
    lefts[#lefts + 1] = most
end
return {redis.call('PTTL', lock), fields, lefts}
