-- Detects a hash of another program: no field of it has a colon and a number, as every owner has.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- Replies:  a field of the hash, if no field can be an owner; else nil, also if the user may not run HKEYS
local lock = KEYS[1]
local fields = redis.pcall('HKEYS', lock)
for i = 1, #fields do
    if string.find(fields[i], ':%-?%d') then
        return nil
    end
end
return fields[1]
