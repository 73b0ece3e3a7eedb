-- Takes a free fair lock when nobody is queued before the owner, or enters one
-- again that the owner holds already. It never queues the owner.
--
-- When the owner takes the lock, nobody will wait for it any more: the deadlines
-- of all others, which its wait had put off, come that much sooner. That is most
-- of what a long queue costs. So many are moved at once: in a union of sets the
-- members of a plain one count 1, times a weight, and the lock's key, which is free,
-- has those members for that moment. A union never expires, so that is put right.
-- Who may not do that moves them one by one.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of the owners that wait, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline, the time
--           from which it counts as dead
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   wait of the owner, milliseconds
-- ARGV[4]   lease, milliseconds
-- ARGV[5]   given: a refusal says more; left out: it is 1
-- Replies:  nil when the owner holds the lock now, else 1. Where more is asked for,
--           an array of the milliseconds that the lock has left, -1 when it never
--           expires and -2 when it is free, and the holder's owner, '' when there
--           is none or the user may not ask (HKEYS)
-- Effects:  the queue loses its dead, up to the first owner that is alive or has
--           no deadline; when taken, it loses the owner too, all other deadlines
--           fall by the wait, the count is 1 and the time to live the lease; when
--           entered again, the count is one higher and the time to live the lease
-- Messages: none
local lock, queue, timeouts = KEYS[1], KEYS[2], KEYS[3]
local now, owner, wait, lease = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]
local head = redis.call('LINDEX', queue, 0)
while head do
    local deadline = redis.call('ZSCORE', timeouts, head)
    if not deadline or tonumber(deadline) > now then
        break
    end
    redis.call('ZREM', timeouts, head)
    redis.call('LPOP', queue)
    head = redis.call('LINDEX', queue, 0)
end
if redis.call('EXISTS', lock) == 0 and (not head or head == owner) then
    redis.call('LPOP', queue)
    redis.call('ZREM', timeouts, owner)
    local waiting = redis.call('ZRANGE', timeouts, 0, -1)
    local moved = #waiting > 4
    if moved then
        for i = 1, #waiting, 1000 do
            local added = redis.pcall('SADD', lock, unpack(waiting, i, math.min(i + 999, #waiting)))
            moved = moved and type(added) == 'number'
        end
        local expires = redis.call('PTTL', timeouts)
        local union = moved and redis.pcall('ZUNIONSTORE', timeouts, 2, timeouts, lock, 'WEIGHTS', 1, -wait)
        moved = type(union) == 'number'
        redis.call('DEL', lock)
        if expires >= 0 then
            redis.call('PEXPIRE', timeouts, expires)
        end
    end
    for i = 1, moved and 0 or #waiting do
        redis.call('ZINCRBY', timeouts, -wait, waiting[i])
    end
    redis.call('HSET', lock, owner, 1)
    redis.call('PEXPIRE', lock, lease)
    return nil
end
if redis.call('HEXISTS', lock, owner) == 1 then
    redis.call('HINCRBY', lock, owner, 1)
    redis.call('PEXPIRE', lock, lease)
    return nil
end
if ARGV[5] then
    return {redis.call('PTTL', lock), redis.pcall('HKEYS', lock)[1] or ''}
end
return 1
