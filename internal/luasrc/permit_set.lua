-- Sets the number of permits that a semaphore has, including acquired ones.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the permits: a sorted set of id -> end of lease, ms since 1970
-- KEYS[3]   the channel of the semaphore
-- ARGV[1]   how many permits the semaphore gets
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- Replies:  the number of available permits
-- Effects:  available and acquired permits add up to the given number, so the number of available permits
--           may be negative; all permits of a new semaphore are available
-- Messages: those of announce, if there are more permits than before
-- Uses:     available, announce
local semaphore, permits, channel = KEYS[1], KEYS[2], KEYS[3]
local most, publish = tonumber(ARGV[1]), ARGV[2]
local free = available(semaphore)
local more = most
if free then
    more = most - free - redis.call('ZCOUNT', permits, 0, '+inf')
end
if not free or more ~= 0 then
    free = redis.call('INCRBY', semaphore, more)
end
announce(channel, publish, more, free)
return free
