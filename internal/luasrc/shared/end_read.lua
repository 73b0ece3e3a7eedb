-- Ends a lock from which a reader has gone, or one of its holds, and sends the message, if no
-- reader that is alive has it: it returns 1 then, else 0. What remains has as much left as the
-- longest of the readers' holds, a lock that is written at least as much as before.
--
-- Given is how many fields the lock has, if the reader has gone, else 0, and what its longest
-- hold had left. Among more than four others that is asked only until one has as much as the
-- lock, which stays as it is then; among more than sixteen see outlived.
--
-- Uses: last_as, lengthen, longest_read, outlived
local function end_read(lock, channel, mode, publish, message, fields, left)
    if mode == 'write' then
        lengthen(lock, longest_read(lock))
        return 0
    end
    local lasts = fields > 5 and redis.call('PTTL', lock) or -1
    if fields > 17 and lasts > 0 and outlived(lock, lasts, left) then
        return 0
    end
    local most, longest = longest_read(lock, lasts > 0 and lasts)
    if most > 0 and most ~= lasts then
        last_as(lock, longest, most)
    end
    if most > 0 then
        return 0
    end
    redis.call('DEL', lock)
    redis.call(publish, channel, message)
    return 1
end
