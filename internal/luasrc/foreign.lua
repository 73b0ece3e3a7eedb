-- Tells a hash of another program from a lock: no field of it has a colon and a number in
-- it, as each owner has (an id, a colon, the number of a thread).
--
-- KEYS[1]   the lock: a hash of owner -> count
-- Replies:  a field of the hash, when no field can be that of a lock; else nil, also when
--           the user may not ask (HKEYS)
-- Effects:  none
-- Messages: none
local lock = KEYS[1]
local fields = redis.pcall('HKEYS', lock)
for i = 1, #fields do
    if string.find(fields[i], ':%-?%d') then
        return nil
    end
end
return fields[1]
