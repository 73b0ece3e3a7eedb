-- Sets deadlines of waiters that have one, given as n values: deadline, waiter, deadline ... No command
-- gets more than a thousand: more would overflow the server's stack.
local function set_deadlines(timeouts, values, n)
    for i = 1, n, 1000 do
        redis.call('ZADD', timeouts, 'XX', unpack(values, i, math.min(i + 999, n)))
    end
end
