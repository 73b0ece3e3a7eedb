-- Sets deadlines of waiters that have one. Given are n values, deadline and waiter in
-- turn. No command gets more than a thousand of them: the stack of a server has no
-- room for more.
local function set_deadlines(timeouts, values, n)
    for i = 1, n, 1000 do
        redis.call('ZADD', timeouts, 'XX', unpack(values, i, math.min(i + 999, n)))
    end
end
