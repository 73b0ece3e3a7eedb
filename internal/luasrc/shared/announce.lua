-- Tells waiters that permits became available, and how many there are now: one message for
-- each of them that can be taken, a hundred at most. Redisson's send one in all, which wakes one
-- of its asynchronous waiters. The number of the last is that of Redisson's, by which it wakes
-- so many threads; each of the others wakes one.
local function announce(channel, publish, freed, free)
    for i = 2, math.min(freed, free, 100) do
        redis.call(publish, channel, 1)
    end
    if freed > 0 and free > 0 then
        redis.call(publish, channel, free)
    end
end
