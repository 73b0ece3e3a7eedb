-- Releases permits of a semaphore unless the semaphore does not exist.
--
-- Redis rejects INCRBY as a script's first write if it is out of memory; deleting the channel's name,
-- which does not exist as a key, is accepted.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the channel of the semaphore
-- ARGV[1]   how many permits to release
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- Replies:  1 if they were released, 0 if the semaphore does not exist
-- Effects:  if released, as many more are available; the semaphore's TTL stays
-- Messages: as announce sends, if released
-- Uses:     announce, available
local semaphore, channel, more, publish = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
if not available(semaphore) then
    return 0
end
redis.call('DEL', channel)
announce(channel, publish, tonumber(more), redis.call('INCRBY', semaphore, more))
return 1
