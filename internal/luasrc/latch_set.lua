-- Sets the count of a count-down latch that has none.
--
-- KEYS[1]   the count: an integer; the key does not exist while the latch is open
-- KEYS[2]   its channel
-- ARGV[1]   count, above 0
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[3]   message: it has closed
-- Replies:  1 if the count was set, 0 if the latch already has one
-- Effects:  the key contains the count and has no TTL; if it is not a string, the script fails and does not
--           change it
-- Messages: if the count was set, the message on the channel
local latch, channel, count, publish, message = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
if redis.call('GET', latch) then
    return 0
end
redis.call('SET', latch, count)
redis.call(publish, channel, message)
return 1
