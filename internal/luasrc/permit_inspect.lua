-- Reads a semaphore and its acquired permits at the same time.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the permits: a sorted set of id -> end of lease, ms since 1970
-- ARGV[1]   the first place to return, in the order in which leases end, from 0
-- ARGV[2]   the last place, -1 for the end
-- Replies:  an array of the semaphore's TTL in milliseconds, -1 if it does not expire, -2 if there is none;
--           its value, empty if it does not exist; the number of acquired permits; and an array of id, end
--           of lease, id ...
local semaphore, permits = KEYS[1], KEYS[2]
return {
    redis.call('PTTL', semaphore),
    redis.call('GET', semaphore) or '',
    redis.call('ZCOUNT', permits, 0, '+inf'),
    redis.call('ZRANGE', permits, ARGV[1], ARGV[2], 'WITHSCORES'),
}
