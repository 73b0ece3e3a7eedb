-- Makes more permits of a semaphore available, or fewer.
--
-- Redis rejects INCRBY as a script's first write if it is out of memory; deleting the channel's name,
-- which does not exist as a key, is accepted.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the channel of the semaphore
-- ARGV[1]   how many permits more, below 0 for fewer
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- Replies:  how many permits are available now
-- Effects:  the number changes, from 0 if the semaphore does not exist; its TTL stays
-- Messages: as announce sends, if there are more than before
-- Uses:     announce
local semaphore, channel, more, publish = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
redis.call('DEL', channel)
local free = redis.call('INCRBY', semaphore, more)
announce(channel, publish, tonumber(more), free)
return free
