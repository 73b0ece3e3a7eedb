-- Sends the message to the waiters that the next attempt can find in front of a free lock: the
-- first and, if that is overdue, all up to the first that is not.
--
-- Uses: overdue, wake
local function wake_front(queue, timeouts, channel, now, publish, message)
    local place = 0
    local waiter = redis.call('LINDEX', queue, place)
    while waiter do
        wake(channel, waiter, publish, message)
        if not overdue(timeouts, waiter, now) then
            break
        end
        place = place + 1
        waiter = redis.call('LINDEX', queue, place)
    end
end
