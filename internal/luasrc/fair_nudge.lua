-- Notifies the first waiter of a free fair lock again.
--
-- When a lock expires or is deleted, no message is sent, so the first waiter keeps sleeping.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of waiting owners, the next one first
-- KEYS[3]   the lock's channel
-- ARGV[1]   owner
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[3]   message
-- Replies:  1 if the owner was notified; 0 if the lock is held or the owner is not the first
-- Messages: if the reply is 1, the message on the owner's channel
-- Uses:     wake
local lock, queue, channel = KEYS[1], KEYS[2], KEYS[3]
local owner, publish, message = ARGV[1], ARGV[2], ARGV[3]
if redis.call('EXISTS', lock) == 1 or redis.call('LINDEX', queue, 0) ~= owner then
    return 0
end
wake(channel, owner, publish, message)
return 1
