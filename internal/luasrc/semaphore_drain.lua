-- Takes all permits that a semaphore has available.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- Replies:  how many permits were available, below 0 when the semaphore owed some
-- Effects:  none is available; the semaphore lives as long as before
-- Messages: none
-- Uses:     available
local semaphore = KEYS[1]
local free = available(semaphore)
if free then
    redis.call('DECRBY', semaphore, free)
end
return free or 0
