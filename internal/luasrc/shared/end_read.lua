-- Completes the release of a reader or of one of its holds: if no live reader holds the lock, it
-- deletes the lock, sends the message and returns 1, else 0. The lock gets the TTL of the longest hold
-- of a reader; while write-locked, at least what it had.
--
-- fields is how many fields the lock has, 0 if the reader still holds it, and left what its longest
-- hold had left. With more than four others, the search ends at a hold with as much left as the lock;
-- with more than sixteen see outlived.
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
