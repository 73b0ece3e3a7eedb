-- Acquires a fair lock if it is free and no other owner is ahead in the queue, whose head is given, or
-- reenters it. Returns whether the owner holds the lock now. If there is a counter, it returns the token
-- instead of true.
--
-- When an owner acquires the lock, it is removed from the queue, and all other deadlines fall by its wait.
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
