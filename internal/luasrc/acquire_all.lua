-- Acquires many locks for one owner as Acquire does. It acquires either all of them or none.
--
-- KEYS[1..n]  the locks, each once: hashes of owner -> count
-- ARGV[1]     owner
-- ARGV[2]     lease, milliseconds
-- Replies:    nil if the owner holds all locks now. Otherwise, an array for the first lock that another
--             owner holds: the remaining milliseconds, or -1 if it does not expire; its holder's owner;
--             and its number, counting from 1. For a key of another type, the array contains the
--             server's error, an empty string and the number
-- Effects:    if acquired, those of Acquire for each lock; otherwise, none
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
