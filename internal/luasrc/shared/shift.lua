-- Brings all deadlines forward by the same time, in milliseconds. The lock must be
-- free: its key is used in between, and is gone afterwards.
--
-- This is most of what a long queue costs, so many deadlines move by one command: in
-- a union of sets the members of a plain set count 1, times a weight, and the lock's
-- key has those members for that moment. The union has no time to live, so the one
-- of the timeouts is restored. For a user without the rights, each deadline moves by
-- a command of its own, and so it does in queues of more than 20,000: there a union
-- costs up to twice as much.
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
