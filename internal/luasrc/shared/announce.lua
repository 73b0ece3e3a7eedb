-- Announces available permits with one message for each new permit, but at most a hundred. Redisson sends
-- only a single message, which wakes only one asynchronous waiter. Like Redisson's message, the last one
-- contains the number of available permits and wakes as many threads. Each of the others wakes one.
local function announce(channel, publish, freed, free)
    for i = 2, math.min(freed, free, 100) do
        redis.call(publish, channel, 1)
    end
    if freed > 0 and free > 0 then
        redis.call(publish, channel, free)
    end
end
