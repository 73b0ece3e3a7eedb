-- Acquires many locks for one owner, each as Acquire does, or none.
--
-- KEYS[1..n]  the locks, each once: hashes of owner -> count
-- ARGV[1]     owner
-- ARGV[2]     lease, milliseconds
-- Replies:    nil if the owner holds all locks now; else an array about the first lock that another
--             owner holds: the milliseconds left, -1 without expiry; its holder's owner; its number,
--             from 1. For a key of another type: the server's error; an empty text; its number
-- Effects:    if acquired, as for Acquire for each lock; else none
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
