-- Removes overdue waiters from the head of the queue. Returns the new head, or false if it is empty.
--
-- Uses: overdue
local function prune(queue, timeouts, now)
    local head = redis.call('LINDEX', queue, 0)
    while head and overdue(timeouts, head, now) do
        redis.call('ZREM', timeouts, head)
        redis.call('LPOP', queue)
        head = redis.call('LINDEX', queue, 0)
    end
    return head
end
