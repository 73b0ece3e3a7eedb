-- Detects a hash that another program wrote. None of its fields contains a colon and a number, as all
-- owners do.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- Replies:  a field of the hash if none of them can be an owner; otherwise, or if the user may not run
--           HKEYS, nil
local lock = KEYS[1]
local fields = redis.pcall('HKEYS', lock)
for i = 1, #fields do
    if string.find(fields[i], ':%-?%d') then
        return nil
    end
end
return fields[1]
