-- Reports that another live reader holds the lock, and that its TTL is right without the ended hold:
-- it has more left than that hold had, or as much as a sampled hold. That is right where a lock never
-- outlives its longest hold, as our scripts ensure (see last_as). It samples two random readers, and
-- may report false where more would tell; so it does if the user may not run HRANDFIELD, and before
-- Redis 6.2.
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
