-- Releases permits of a semaphore if it exists.
--
-- If Redis is out of memory, it rejects INCRBY as the first write of a script. It accepts the DEL before
-- it, whose key is the name of the channel and does not exist.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the channel of the semaphore
-- ARGV[1]   how many permits to release
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- Replies:  1 if they were released, 0 if the semaphore does not exist
-- Effects:  if released, the permits become available; the semaphore's TTL does not change
-- Messages: those of announce, if released
-- Uses:     announce, available
local semaphore, channel, more, publish = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
if not available(semaphore) then
    return 0
end
redis.call('DEL', channel)
announce(channel, publish, tonumber(more), redis.call('INCRBY', semaphore, more))
return 1
