-- Acquires permits of a semaphore without leases, all or none.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- ARGV[1]   how many permits to acquire
-- Replies:  how many permits are available now, if acquired; else an array of -1 and how many are
--           available; of -1 alone if the semaphore does not exist
-- Effects:  if acquired, as many fewer are available
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
