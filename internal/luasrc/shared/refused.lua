-- Returns the reply if another owner holds a read/write lock: the remaining milliseconds and, if there is
-- one and the user may run HKEYS, the writer. For a hash that is not a read/write lock, it returns an
-- error.
local function refused(lock, mode)
    if mode ~= 'read' and mode ~= 'write' then
        return {err = 'WRONGTYPE the key holds a hash that is no read/write lock'}
    end
    local left = redis.call('PTTL', lock)
    if mode == 'write' then
        local fields = redis.pcall('HKEYS', lock)
        for i = 1, #fields do
            if string.sub(fields[i], -6) == ':write' then
                return {left, fields[i]}
            end
        end
    end
    return left
end
