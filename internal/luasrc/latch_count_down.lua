-- Lowers the count of a count-down latch by one. It must not be repeated.
--
-- If Redis is out of memory, it rejects DECR as the first write of a script. It accepts the DEL before it,
-- whose key is the name of the channel and does not exist.
--
-- KEYS[1]   the count: an integer; the key does not exist while the latch is open
-- KEYS[2]   its channel
-- ARGV[1]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[2]   message: it has opened
-- Replies:  nil
-- Effects:  the count falls by one, and is deleted if it becomes 0 or less; if the key is not an integer,
--           the script fails and does not change it
-- Messages: if the count reached 0, the message on the channel
local latch, channel, publish, message = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
redis.call('DEL', channel)
local left = redis.call('DECR', latch)
if left <= 0 then
    redis.call('DEL', latch)
end
if left == 0 then
    redis.call(publish, channel, message)
end
return nil
