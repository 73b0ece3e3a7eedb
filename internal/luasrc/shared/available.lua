-- Returns how many permits a semaphore has available, false when its key is not there. A key
-- that holds no whole number is an error, before anything is changed.
local function available(semaphore)
    local text = redis.call('GET', semaphore)
    local free = tonumber(text or '0')
    if not free or free ~= math.floor(free) then
        redis.call('INCRBY', semaphore, 0)
    end
    return text and free
end
