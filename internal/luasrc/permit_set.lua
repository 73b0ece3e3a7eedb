-- Sets how many permits a semaphore has, acquired ones included.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the permits: a sorted set of id -> end of lease, ms since 1970
-- KEYS[3]   the channel of the semaphore
-- ARGV[1]   how many permits there shall be
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- Replies:  how many permits are available now
-- Effects:  available and acquired permits are together as many as given, so the available ones may be
--           below 0; a new semaphore has all of them available
-- Messages: as announce sends, if there are more than before
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
