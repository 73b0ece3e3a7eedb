-- Brings all deadlines forward by the same milliseconds. The lock must be free: its key is used
-- temporarily.
--
-- This dominates the cost of a long queue, so one ZUNIONSTORE moves all deadlines: the lock's key
-- becomes a set of the waiters, each of which counts 1, times a weight. The union loses the TTL of the
-- timeouts, which is restored. Without the rights, and in queues of more than 20,000, where a union
-- costs up to twice as much, each deadline moves by its own command.
local function shift(lock, timeouts, by)
    local waiting = redis.call('ZRANGE', timeouts, 0, -1)
    local moved = #waiting > 4 and #waiting <= 20000
    if moved then
        for i = 1, #waiting, 1000 do
            local added = redis.pcall('SADD', lock, unpack(waiting, i, math.min(i + 999, #waiting)))
            moved = moved and type(added) == 'number'
        end
        local expires = redis.call('PTTL', timeouts)
        local union = moved and redis.pcall('ZUNIONSTORE', timeouts, 2, timeouts, lock, 'WEIGHTS', 1, -by)
        moved = type(union) == 'number'
        redis.call('DEL', lock)
        if expires >= 0 then
            redis.call('PEXPIRE', timeouts, expires)
        end
    end
    for i = 1, moved and 0 or #waiting do
        redis.call('ZINCRBY', timeouts, -by, waiting[i])
    end
end
