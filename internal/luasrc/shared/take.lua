-- Takes a free fair lock when no other owner is before the owner in the queue, whose
-- head is given, or enters the lock again that the owner holds. It returns whether
-- the owner holds the lock now, and where a counter is given, the token instead of
-- true.
--
-- An owner that takes the lock leaves the queue, and the deadlines of all others,
-- which its wait had put off, come that much sooner.
--
-- Uses: next_token, shift
local function take(lock, queue, timeouts, head, owner, wait, lease, counter, least)
    if redis.call('EXISTS', lock) == 0 and (not head or head == owner) then
        local token = not counter or next_token(counter, least)
        redis.call('LPOP', queue)
        redis.call('ZREM', timeouts, owner)
        shift(lock, timeouts, wait)
        redis.call('HSET', lock, owner, 1)
        redis.call('PEXPIRE', lock, lease)
        return token
    end
    if redis.call('HEXISTS', lock, owner) == 1 then
        local token = not counter or next_token(counter, least)
        redis.call('HINCRBY', lock, owner, 1)
        redis.call('PEXPIRE', lock, lease)
        return token
    end
    return false
end
