-- Announces available permits: one message for each new permit, at most a hundred. Redisson sends one
-- message in total, which wakes only a single asynchronous waiter. Like Redisson's, the last message has
-- the number of available permits and wakes as many threads; each other message wakes one.
local function announce(channel, publish, freed, free)
    for i = 2, math.min(freed, free, 100) do
        redis.call(publish, channel, 1)
    end
    if freed > 0 and free > 0 then
        redis.call(publish, channel, free)
    end
end
