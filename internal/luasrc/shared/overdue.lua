-- Reports whether the deadline of a waiter has passed. A waiter without a deadline is not overdue.
local function overdue(timeouts, waiter, now)
    local deadline = redis.call('ZSCORE', timeouts, waiter)
    return deadline and tonumber(deadline) <= now
end
