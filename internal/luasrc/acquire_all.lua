-- Takes many locks at once for one owner, as Acquire takes each of them, or none.
--
-- KEYS[1..n]  the locks, each once: hashes of owner -> count
-- ARGV[1]     owner
-- ARGV[2]     lease, milliseconds
-- Replies:    nil when the owner holds all locks now; else, of the first that another owner
--             has, an array: the milliseconds that it has left, -1 when it never expires; its
--             holder's owner; its number, from 1. Of a key that is no lock an array, too: the
--             error of the server; an empty text; its number
-- Effects:    when acquired, as by Acquire for each lock; else none
-- Messages:   none
local owner, lease = ARGV[1], ARGV[2]
for i = 1, #KEYS do
    local lock = KEYS[i]
    if redis.call('EXISTS', lock) == 1 then
        local held = redis.pcall('HEXISTS', lock, owner)
        if type(held) == 'table' then
            if not string.find(held.err, 'WRONGTYPE', 1, true) then
                return held
            end
            return {held.err, '', i}
        end
        if held == 0 then
            return {redis.call('PTTL', lock), redis.pcall('HKEYS', lock)[1], i}
        end
    end
end
for i = 1, #KEYS do
    redis.call('HINCRBY', KEYS[i], owner, 1)
    redis.call('PEXPIRE', KEYS[i], lease)
end
return nil
