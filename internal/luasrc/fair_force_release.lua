-- Frees a fair lock, regardless of its holder. Waiters keep their places.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of waiting owners, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline
-- KEYS[4]   the lock's channel
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[3]   message
-- Replies:  1 if there was a holder, 0 if the lock was free
-- Effects:  overdue waiters are removed from the head of the queue; the lock is deleted
-- Messages: if there was a holder, the message on the channel of the next waiter
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
