-- Takes a free fair lock when no other owner is before the owner in the queue, whose
-- head is given, or enters the lock again that the owner holds. It returns whether
-- the owner holds the lock now.
--
-- An owner that takes the lock leaves the queue, and the deadlines of all others,
-- which its wait had put off, come that much sooner.
--
-- Uses: shift
local function take(lock, queue, timeouts, head, owner, wait, lease)
    if redis.call('EXISTS', lock) == 0 and (not head or head == owner) then
        redis.call('LPOP', queue)
        redis.call('ZREM', timeouts, owner)
        shift(lock, timeouts, wait)
        redis.call('HSET', lock, owner, 1)
        redis.call('PEXPIRE', lock, lease)
        return true
    end
    if redis.call('HEXISTS', lock, owner) == 1 then
        redis.call('HINCRBY', lock, owner, 1)
        redis.call('PEXPIRE', lock, lease)
        return true
    end
    return false
end
