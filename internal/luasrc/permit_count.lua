-- Counts the permits of a semaphore. Expired permits are counted as available.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the permits: a sorted set of id -> end of lease, ms since 1970
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- Replies:  an array of 1 if the semaphore exists, else 0; the number of available permits; and the number of
--           acquired permits
-- Uses:     available
local semaphore, permits, now = KEYS[1], KEYS[2], ARGV[1]
local free = available(semaphore)
local over = redis.call('ZCOUNT', permits, 0, now)
local exists = 0
if free then
    exists = 1
end
return {exists, (free or 0) + over, redis.call('ZCOUNT', permits, 0, '+inf') - over}
