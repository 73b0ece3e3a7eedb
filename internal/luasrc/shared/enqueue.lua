-- Puts an owner at the end of the queue of a fair lock, unless it has a deadline, which
-- it keeps with its place. It returns the milliseconds until something may change for it,
-- and its place in the queue, from 1, when it was queued now, else 0.
--
-- An owner that has a deadline is told what the lock has left, at least 0; one that is
-- queued now the time to the deadline of the last in the queue, or what the lock has left.
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
