-- Acquires all the permits that are requested of a semaphore without leases, or none.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- ARGV[1]   how many permits to acquire
-- Replies:  if acquired, the number of permits that are still available. Otherwise, an array of -1 and the
--           number of available permits, or of -1 alone if the semaphore does not exist
-- Effects:  if acquired, the permits are no longer available
-- Uses:     available
local semaphore, wanted = KEYS[1], ARGV[1]
local free = available(semaphore)
if not free then
    return {-1}
end
if free < tonumber(wanted) then
    return {-1, free}
end
return redis.call('DECRBY', semaphore, wanted)
