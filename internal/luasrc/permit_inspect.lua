-- Reads a semaphore, and who has its permits, at one moment.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the permits: a sorted set of id -> when the permit's lease ends
-- ARGV[1]   the first place: of the permits to tell, in the order in which they end, from 0
-- ARGV[2]   the last place, -1 for the end
-- Replies:  an array of the milliseconds that the semaphore lives, -1 for ever, -2 when it does
--           not exist; of its text, empty when it does not exist; of how many permits are taken;
--           and of an array of those told: the id and when its lease ends, in turn
-- Effects:  none
-- Messages: none
local semaphore, permits = KEYS[1], KEYS[2]
return {
    redis.call('PTTL', semaphore),
    redis.call('GET', semaphore) or '',
    redis.call('ZCOUNT', permits, 0, '+inf'),
    redis.call('ZRANGE', permits, ARGV[1], ARGV[2], 'WITHSCORES'),
}
