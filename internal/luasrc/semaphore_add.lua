-- Makes more permits of a semaphore available, or fewer.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the channel of the semaphore
-- ARGV[1]   how many permits more, below 0 for fewer
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- Replies:  how many permits are available now
-- Effects:  a semaphore that does not exist has so many permits; one that does lives as long as
--           before
-- Messages: as announce says, when there are more than before
-- Uses:     announce
local semaphore, channel, more, publish = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local free = redis.call('INCRBY', semaphore, more)
announce(channel, publish, tonumber(more), free)
return free
