-- Returns the length of a queue without LLEN, a right that users otherwise do not need, by a search for
-- the last place: some tens of commands that read one place each.
local function length(queue)
    local n, step = 0, 1
    while redis.call('LRANGE', queue, n + step - 1, n + step - 1)[1] do
        n, step = n + step, step * 2
    end
    while step > 1 do
        step = step / 2
        if redis.call('LRANGE', queue, n + step - 1, n + step - 1)[1] then
            n = n + step
        end
    end
    return n
end
