-- Acquires all available permits of a semaphore.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- Replies:  the number of permits that were available, negative if more were acquired than exist
-- Effects:  the number of available permits becomes 0; the semaphore's TTL does not change
-- Uses:     available
local semaphore = KEYS[1]
local free = available(semaphore)
if free then
    redis.call('DECRBY', semaphore, free)
end
return free or 0
