-- Lets a lock that a reader has last for some milliseconds at least; left is what it has. One
-- without a time to live gets one that is as long as the longest of the readers' holds. While
-- it is written it stays without: what the writer is owed is not known.
--
-- Uses: last_as, longest_read
local function last_for(lock, left, millis)
    if left == -1 then
        if redis.call('HGET', lock, 'mode') == 'write' then
            return
        end
        local most, longest = longest_read(lock)
        if most > millis then
            return last_as(lock, longest, most)
        end
    end
    if left < millis then
        redis.call('PEXPIRE', lock, millis)
    end
end
