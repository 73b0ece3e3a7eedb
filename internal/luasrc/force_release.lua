-- Frees a lock, regardless of its holder.
--
-- KEYS[1]   the lock
-- KEYS[2]   the lock's channel
-- ARGV[1]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[2]   message
-- Replies:  1 if there was a holder, 0 if the lock was free
-- Effects:  the lock is deleted
-- Messages: if there was a holder, the message on the channel
local lock, channel, publish, message = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
if redis.call('DEL', lock) == 0 then
    return 0
end
redis.call(publish, channel, message)
return 1
