-- Reads who holds a read/write lock, how often, and for how long, at one moment.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel, unused: it is no key, and so a server whose slot moves
--           runs the script with all keys or not at all
-- Replies:  an array of the milliseconds that the lock has left, -1 when it never expires,
--           -2 when it is free; and of an array of its fields and their values in turn; and of
--           an array of the milliseconds that the longest hold of each field's owner as a
--           reader has left, below 0 when it has none; of a hash without a mode, which may be
--           another program's with many large numbers, a thousand holds are looked at
-- Effects:  none
-- Messages: none
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
