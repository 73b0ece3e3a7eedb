-- Sends the message to the waiters that may be first when the next attempt is made. These are the first
-- waiter and, if it is overdue, the waiters up to the first one that is not. It reads a long queue in
-- batches of a thousand places, because each LINDEX would have to walk to its place.
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
