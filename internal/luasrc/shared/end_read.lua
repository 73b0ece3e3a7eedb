-- Ends a lock from which a reader's hold has gone, and sends the message, if no reader that
-- is alive has it: it returns 1 then, else 0. What remains has as much left as the longest
-- of the readers' holds, a lock that is written at least as much as before.
--
-- Uses: lengthen, longest_read
local function end_read(lock, channel, mode, publish, message)
    local most = longest_read(lock)
    if mode == 'write' then
        lengthen(lock, most)
        return 0
    end
    if most > 0 then
        redis.call('PEXPIRE', lock, most)
        return 0
    end
    redis.call('DEL', lock)
    redis.call(publish, channel, message)
    return 1
end
