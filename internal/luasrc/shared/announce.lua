-- Announces available permits: one message for each new one, at most a
-- hundred. Redisson sends one in all, which wakes one of its asynchronous waiters. The last message has
-- the number of available permits, as Redisson's has, by which it wakes as many threads; each of the
-- others wakes one.
local function announce(channel, publish, freed, free)
    for i = 2, math.min(freed, free, 100) do
        redis.call(publish, channel, 1)
    end
    if freed > 0 and free > 0 then
        redis.call(publish, channel, free)
    end
end
