-- Detects a hash that is not a plain or fair lock: one that another program wrote, in which no field
-- contains a colon and a number, as all owners do, or a read/write lock.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- Replies:  a field of the hash if none of them can be an owner; mode for a read/write lock; otherwise, or
--           if the user may not run HKEYS, nil
local lock = KEYS[1]
local fields, owned = redis.pcall('HKEYS', lock), false
for i = 1, #fields do
    if fields[i] == 'mode' then
        return fields[i]
    end
    owned = owned or string.find(fields[i], ':%-?%d')
end
return not owned and fields[1] or nil
