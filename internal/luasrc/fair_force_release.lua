-- Frees a fair lock, whoever holds it. Those who wait keep their places.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of the owners that wait, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline, the time
--           from which it counts as dead
-- KEYS[4]   the lock's channel; a waiter's own is that, a colon and the waiter
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[3]   message
-- Replies:  1 when there was a holder, 0 when the lock was free
-- Effects:  the queue loses its dead, up to the first owner that is alive or has
--           no deadline; the lock is deleted
-- Messages: the message on the channel of the next in the queue, if there is one,
--           when there was a holder
-- Uses:     prune, wake
local lock, queue, timeouts, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, publish, message = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local head = prune(queue, timeouts, now)
if redis.call('DEL', lock) == 0 then
    return 0
end
if head then
    wake(channel, head, publish, message)
end
return 1
