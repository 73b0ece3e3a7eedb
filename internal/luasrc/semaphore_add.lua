-- Raises or lowers the number of available permits.
--
-- If Redis is out of memory, it rejects INCRBY as the first write of a script. It accepts the DEL before
-- it, whose key is the name of the channel and does not exist.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the channel of the semaphore
-- ARGV[1]   how many permits are added, negative to remove permits
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- Replies:  the number of available permits
-- Effects:  the number changes, starting at 0 if the semaphore does not exist; the TTL does not change
-- Messages: those of announce, if permits were added
-- Uses:     announce
local semaphore, channel, more, publish = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
redis.call('DEL', channel)
local free = redis.call('INCRBY', semaphore, more)
announce(channel, publish, tonumber(more), free)
return free
