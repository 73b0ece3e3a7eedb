-- Takes an owner that waits no longer out of the queue of a fair lock.
--
-- The deadlines of those behind it, which its wait had put off, come that much
-- sooner. As a rule those are the latest deadlines, in the order of the queue, and
-- are moved by few commands; otherwise each is moved by itself. One that has none,
-- as can be after a failure, gets one that is long past, so that it cannot block
-- the queue for ever.
--
-- The owner may have been told that the lock is free. So, when it is, those are
-- told whom the next attempt can find in front, for nobody else will: the new
-- head and, where it is dead, by this clock, all up to the first that is not.
-- Being dead, they are left to the next script that removes the dead.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of the owners that wait, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline, the time
--           from which it counts as dead
-- KEYS[4]   the lock's channel; a waiter's own is that, a colon and the waiter
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   wait with which the owner was queued, milliseconds
-- ARGV[4]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[5]   message
-- Replies:  nil
-- Effects:  for each place in the queue behind the owner's first, the deadline of
--           who stands there falls by the wait, from 0 if there is none; the owner
--           is in neither queue nor timeouts
-- Messages: when the lock is free, the message on the channels of those in front,
--           up to the first that is alive or has no deadline
local lock, queue, timeouts, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, owner, wait = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local waiters = redis.call('LRANGE', queue, 0, -1)
local place = 1
while waiters[place] and waiters[place] ~= owner do
    place = place + 1
end
if place < #waiters then
    local moved = redis.call('ZRANGE', timeouts, place - #waiters, -1, 'WITHSCORES')
    local n = 1
    for i = place + 1, #waiters do
        local waiter = waiters[i]
        if moved[n] ~= waiter then
            moved = nil
            break
        end
        moved[n], moved[n + 1] = moved[n + 1] - wait, waiter
        n = n + 2
    end
    if moved then
        for i = 1, #moved, 1000 do
            redis.call('ZADD', timeouts, unpack(moved, i, math.min(i + 999, #moved)))
        end
    else
        for i = place + 1, #waiters do
            redis.call('ZINCRBY', timeouts, -wait, waiters[i])
        end
    end
end
redis.call('ZREM', timeouts, owner)
redis.call('LREM', queue, 0, owner)
if redis.call('EXISTS', lock) == 0 then
    for _, waiter in ipairs(waiters) do
        if waiter ~= owner then
            redis.call(ARGV[4], channel .. ':' .. waiter, ARGV[5])
            local deadline = redis.call('ZSCORE', timeouts, waiter)
            if not deadline or tonumber(deadline) > now then
                break
            end
        end
    end
end
return nil
