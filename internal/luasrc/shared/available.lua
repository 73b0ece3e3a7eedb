-- Returns how many permits a semaphore has available, false if it does not exist. A key without a whole
-- number is an error, before anything changes.
local function available(semaphore)
    local text = redis.call('GET', semaphore)
    local free = tonumber(text or '0')
    if not free or free ~= math.floor(free) then
        redis.call('INCRBY', semaphore, 0)
    end
    return text and free
end
