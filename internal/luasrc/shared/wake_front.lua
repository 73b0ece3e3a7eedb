-- Sends the message to the waiters that the next attempt can find in front of a free lock: the first
-- and, if it is overdue, all up to the first that is not. It reads a long queue in parts of a thousand
-- places: each LINDEX would walk to its place.
--
-- Uses: overdue, wake
local function wake_front(queue, timeouts, channel, now, publish, message)
    local place, last = 0, 0
    repeat
        local waiters = redis.call('LRANGE', queue, place, last)
        for _, waiter in ipairs(waiters) do
            wake(channel, waiter, publish, message)
            if not overdue(timeouts, waiter, now) then
                return
            end
        end
        place, last = last + 1, last + 1000
    until #waiters == 0
end
