-- Returns the kind of object under a key that a caller used as another kind.
--
-- KEYS[1]   the lock: a key of any type
-- Replies:  lock for a plain, fair or fenced lock; read/write for a read/write lock; number for a semaphore
--           or a latch; nil for other keys, and if the user may not run HGET, HKEYS or GET
local lock = KEYS[1]
local mode = redis.pcall('HGET', lock, 'mode')
if type(mode) == 'table' then
    local text = redis.pcall('GET', lock)
    if type(text) == 'string' and string.find(text, '^%-?%d+$') then
        return 'number'
    end
    return nil
end
if mode == 'read' or mode == 'write' then
    return 'read/write'
end
local fields = redis.pcall('HKEYS', lock)
for i = 1, #fields do
    if string.find(fields[i], ':%-?%d') then
        return 'lock'
    end
end
return nil
