-- Sets the deadlines of waiters that already have one. They are given as n values: deadline, waiter,
-- deadline ... Each command gets at most a thousand values, because more would overflow the server's stack.
local function set_deadlines(timeouts, values, n)
    for i = 1, n, 1000 do
        redis.call('ZADD', timeouts, 'XX', unpack(values, i, math.min(i + 999, n)))
    end
end
