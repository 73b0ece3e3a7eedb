-- Reports whether another live reader holds the lock and the lock's TTL is still right without the ended
-- hold. This is the case if the TTL is longer than that of the ended hold or equal to that of another
-- hold, because our scripts ensure that a lock never outlives its longest hold (see last_as). It samples
-- only two random readers, so it may return false although the TTL is right. It always returns false
-- before Redis 6.2 and if the user may not run HRANDFIELD.
--
-- Uses: hold_key
local function outlived(lock, lasts, left)
    for i = 1, 2 do
        local reader = redis.pcall('HRANDFIELD', lock)
        if type(reader) ~= 'string' then
            return false
        end
        local more = redis.call('PTTL', hold_key(lock, reader, 1))
        if more == lasts or more > 0 and lasts > left then
            return true
        end
    end
    return false
end
