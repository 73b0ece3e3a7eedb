-- Lowers the count of a count-down latch by one. It must not be repeated.
--
-- Redis rejects DECR as a script's first write if it is out of memory; deleting the channel's name,
-- which does not exist as a key, is accepted.
--
-- KEYS[1]   the count: an integer; the key does not exist while the latch is open
-- KEYS[2]   its channel
-- ARGV[1]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[2]   message: it has opened
-- Replies:  nil
-- Effects:  the count falls by one; a count that would be 0 or less is deleted; a key that is not an
--           integer is an error, and stays
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
