-- Creates a semaphore if it does not exist.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the channel of the semaphore
-- ARGV[1]   how many permits the semaphore gets
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[3]   the semaphore's time to live, milliseconds, 0 for none
-- Replies:  1 if it was created, 0 if it exists
-- Effects:  if the key is not a string, the script fails and does not change it
-- Messages: those of announce, if it was created
-- Uses:     announce
local semaphore, channel, most, publish, ttl = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
if redis.call('GET', semaphore) then
    return 0
end
redis.call('SET', semaphore, most)
if tonumber(ttl) > 0 then
    redis.call('PEXPIRE', semaphore, ttl)
end
announce(channel, publish, tonumber(most), tonumber(most))
return 1
