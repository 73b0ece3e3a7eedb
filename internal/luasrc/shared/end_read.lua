-- Completes the release of a reader or of one hold. If no live reader holds the lock, it deletes the lock,
-- sends the message and returns 1. Otherwise, it returns 0, and the lock gets the TTL of the longest hold
-- of a reader. While the lock is write-locked, its TTL never falls.
--
-- fields is the number of fields of the lock, or 0 if the reader still holds it. left is the remaining time
-- of the reader's longest hold. If there are more than four other readers, the search ends at a hold that
-- has the TTL of the lock. If there are more than sixteen, see outlived.
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
