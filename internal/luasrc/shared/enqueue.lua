-- Puts an owner at the end of the queue of a fair lock; an owner with a deadline keeps it and its place.
-- Returns the milliseconds to wait and, for a newly queued owner, its place from 1, else 0.
--
-- An owner with a deadline waits for the lock's remaining time, at least 0; a newly queued owner, until
-- the deadline of the last waiter, or for the lock's remaining time.
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
