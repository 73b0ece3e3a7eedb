-- Counts the permits of a semaphore. A permit whose lease is over counts as available; it is left
-- for the next attempt to give back.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the permits: a sorted set of id -> when the permit's lease ends
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- Replies:  an array of 1 when the semaphore exists, else 0; of how many permits are available;
--           and of how many are taken
-- Effects:  none
-- Messages: none
-- Uses:     available
local semaphore, permits, now = KEYS[1], KEYS[2], ARGV[1]
local free = available(semaphore)
local over = redis.call('ZCOUNT', permits, 0, now)
local exists = 0
if free then
    exists = 1
end
return {exists, (free or 0) + over, redis.call('ZCOUNT', permits, 0, '+inf') - over}
