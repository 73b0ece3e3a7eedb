-- Makes more permits of a semaphore available, or fewer.
--
-- A server without memory refuses INCRBY as the first write of a script. Behind one that
-- needs none, which changes nothing, since no key is called as the channel is, it does not.
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
redis.call('DEL', channel)
local free = redis.call('INCRBY', semaphore, more)
announce(channel, publish, tonumber(more), free)
return free
