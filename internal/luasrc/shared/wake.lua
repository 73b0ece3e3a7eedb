-- Sends the message to one waiter, on the waiter's own channel.
local function wake(channel, waiter, publish, message)
    redis.call(publish, channel .. ':' .. waiter, message)
end
