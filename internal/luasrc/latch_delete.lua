-- Deletes the count of a count-down latch, which opens it.
--
-- KEYS[1]   the count: an integer; the key does not exist while the latch is open
-- KEYS[2]   its channel
-- ARGV[1]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[2]   message, as Redisson sends it: it has closed
-- Replies:  1 if there was a count, else 0
-- Effects:  the key is deleted; if it is not an integer, the script fails and does not change it
-- Messages: if there was a count, the message on the channel
local latch, channel, publish, message = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local count = redis.call('GET', latch)
if not count then
    return 0
end
if not string.match(count, '^-?%d+$') then
    return redis.error_reply('ERR value is not an integer or out of range')
end
redis.call('DEL', latch)
redis.call(publish, channel, message)
return 1
