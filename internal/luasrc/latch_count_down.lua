-- Lowers the count of a count-down latch by one. It is not to be repeated: it lowers again.
--
-- A server without memory refuses DECR as the first write of a script. Behind one that needs
-- none, which changes nothing, since no key is called as the channel is, it does not.
--
-- KEYS[1]   the count: an integer, and no key while the latch is open
-- KEYS[2]   its channel
-- ARGV[1]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[2]   message: it has opened
-- Replies:  nil
-- Effects:  the count is one lower; one that would be 0 or less is deleted; a key that is no
--           integer is an error, and stays
-- Messages: the message on the channel, when the count has come to 0
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
