-- Takes a free fair lock with the next token when nobody is queued before the owner, or
-- enters one again that the owner holds already; else queues the owner, unless it is
-- queued.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of the owners that wait, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline, the time
--           from which it counts as dead
-- KEYS[4]   the counter: the last token that was given, a number
-- KEYS[5]   the lock's channel, unused: it is no key, and so a server whose slot moves
--           runs the script with all keys or not at all
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   wait of the owner, milliseconds
-- ARGV[4]   lease, milliseconds
-- ARGV[5]   least: what the counter must have reached, 0 for anything
-- Replies:  the token when the owner holds the lock now; else an array of the number
--           that the script without a token gives, the holder's owner, '' when there is
--           none or the user may not ask (HKEYS), the owner that is the next in the
--           queue, and the place of this one in it, from 1, when it was queued now, else
--           0
-- Effects:  those of the script without a token, and when the lock is acquired, the
--           counter is one higher; when it cannot be raised, an error, and nothing
--           changes but that the queue has lost its dead
-- Messages: none
-- Uses:     enqueue, prune, take
local lock, queue, timeouts, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, owner, wait, lease, least = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local head = prune(queue, timeouts, now)
local token = take(lock, queue, timeouts, head, owner, wait, lease, counter, least)
if token then
    return token
end
local left, queued = enqueue(lock, queue, timeouts, now, owner, wait)
return {left, redis.pcall('HKEYS', lock)[1] or '', head or owner, queued}
