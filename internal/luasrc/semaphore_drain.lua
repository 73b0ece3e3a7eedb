-- Acquires all available permits of a semaphore.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- Replies:  how many permits were available, below 0 if more were acquired than exist
-- Effects:  none is available; the semaphore's TTL stays
-- Uses:     available
local semaphore = KEYS[1]
local free = available(semaphore)
if free then
    redis.call('DECRBY', semaphore, free)
end
return free or 0
