-- Lowers all deadlines by the same number of milliseconds. The lock must be free, because its key is used
-- temporarily.
--
-- This is most of the cost of a long queue, so a single ZUNIONSTORE changes all deadlines. For this, the
-- lock's key becomes a set of the waiters, whose scores are 1 and are multiplied by a weight. The command
-- removes the TTL of the timeouts, which is then restored. If the user does not have the rights, or if the
-- queue is longer than 20,000, where ZUNIONSTORE would take up to twice as long, each deadline is changed by
-- its own command.
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
