-- Tells the next in the queue of a fair lock once more that the lock is free.
--
-- A lock can become free without a message: its lease ran out, or its key was
-- deleted. An owner that then sleeps as long as it was told keeps all others
-- waiting.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of the owners that wait, the next one first
-- KEYS[3]   the lock's channel; a waiter's own is that, a colon and the waiter
-- ARGV[1]   owner
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[3]   message
-- Replies:  1 when the owner was told; 0 when the lock is held or the owner is not
--           the first in the queue
-- Effects:  none
-- Messages: the message on the owner's channel, when the reply is 1
-- Uses:     wake
local lock, queue, channel = KEYS[1], KEYS[2], KEYS[3]
local owner, publish, message = ARGV[1], ARGV[2], ARGV[3]
if redis.call('EXISTS', lock) == 1 or redis.call('LINDEX', queue, 0) ~= owner then
    return 0
end
wake(channel, owner, publish, message)
return 1
