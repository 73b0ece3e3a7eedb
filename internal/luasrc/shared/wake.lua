-- Sends the message to one waiter, on its own channel: the lock's, a colon and the waiter.
local function wake(channel, waiter, publish, message)
    redis.call(publish, channel .. ':' .. waiter, message)
end
