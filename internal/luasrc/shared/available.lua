-- Returns the number of available permits of a semaphore, or false if it does not exist. If the key does
-- not contain an integer, the script fails before it changes anything.
local function available(semaphore)
    local text = redis.call('GET', semaphore)
    local free = tonumber(text or '0')
    if not free or free ~= math.floor(free) then
        redis.call('INCRBY', semaphore, 0)
    end
    return text and free
end
