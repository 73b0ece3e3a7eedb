-- Adds an owner to the end of the queue of a fair lock. An owner that has a deadline keeps its deadline
-- and its place. Returns the milliseconds to wait and the place of an owner that was added, counting from
-- 1, or 0.
--
-- An owner that has a deadline waits for the lock's remaining time, or 0 if that is negative. An owner
-- that was added waits until the deadline of the last waiter or, without one, for the remaining time.
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
