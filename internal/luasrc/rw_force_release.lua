-- Frees a read/write lock in one mode, regardless of its holders.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel
-- ARGV[1]   mode: read or write
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[3]   message
-- Replies:  1 if the lock was in the mode, else 0
-- Effects:  a lock in the mode is deleted; the keys of readers' holds stay until they expire
-- Messages: if the lock was deleted, the message on the channel
local lock, channel, mode, publish, message = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
if redis.call('HGET', lock, 'mode') ~= mode then
    return 0
end
redis.call('DEL', lock)
redis.call(publish, channel, message)
return 1
