-- Returns the length of a queue. It does not use LLEN, for which users otherwise do not need a right, but
-- searches for the last place with several dozen commands, each of which reads one place.
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
