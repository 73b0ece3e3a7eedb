-- Reports that a lock of many readers lasts longer than a reader's hold that ended had left,
-- and that a reader who is alive has it. The longest hold is another's then: what the lock has
-- left is right, and need not be found by a look at every reader. Of few readers, and to a
-- user who may not ask (HKEYS), it reports false.
--
-- Uses: hold_count, hold_key
local function outlived(lock, left)
    if redis.call('HLEN', lock) <= 17 or redis.call('PTTL', lock) <= left then
        return false
    end
    for _, reader in ipairs(redis.pcall('HKEYS', lock)) do
        local count = hold_count(redis.call('HGET', lock, reader))
        if count > 0 and redis.call('PTTL', hold_key(lock, reader, count)) > 0 then
            return true
        end
    end
    return false
end
