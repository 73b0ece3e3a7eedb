-- Makes a semaphore that does not exist.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the channel of the semaphore
-- ARGV[1]   how many permits there shall be
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[3]   the semaphore's time to live, milliseconds, 0 for none
-- Replies:  1 when it was made, 0 when there is one
-- Effects:  as asked for, when there is none; a key that is no text is an error, and stays
-- Messages: as announce says, when it was made
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
