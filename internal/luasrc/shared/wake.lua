-- Sends the message to one waiter. The name of its channel is that of the lock's channel, followed by a
-- colon and the waiter.
local function wake(channel, waiter, publish, message)
    redis.call(publish, channel .. ':' .. waiter, message)
end
