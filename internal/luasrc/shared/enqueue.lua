-- Puts an owner at the end of the queue of a fair lock; one with a deadline keeps it and its place.
-- Returns the milliseconds to wait and the place, from 1, if it was queued now, else 0.
--
-- The wait of an owner with a deadline is what the lock has left, at least 0; of one queued now, the
-- time to the deadline of the last in the queue, or what the lock has left.
local function enqueue(lock, queue, timeouts, now, owner, wait)
    local left, queued = redis.call('PTTL', lock), 0
    if redis.call('ZSCORE', timeouts, owner) then
        left = math.max(0, left)
    else
        local last = redis.call('LINDEX', queue, -1)
        local deadline = last and redis.call('ZSCORE', timeouts, last)
        if deadline then
            left = tonumber(deadline) - now
        end
        redis.call('ZADD', timeouts, left + wait + now, owner)
        queued = redis.call('RPUSH', queue, owner)
    end
    return left, queued
end
