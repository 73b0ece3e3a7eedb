-- Ends the last hold of the writer, and sends the message: to all that wait, also when
-- readers remain, whose lock it is then, for as long as the longest of their holds. One of
-- these at least must be alive, else the lock is deleted.
--
-- Uses: last_as, longest_read
local function end_write(lock, channel, writer, publish, message)
    redis.call('HDEL', lock, writer)
    local most, longest = longest_read(lock)
    if most > 0 then
        redis.call('HSET', lock, 'mode', 'read')
        last_as(lock, longest, most)
    else
        redis.call('DEL', lock)
    end
    redis.call(publish, channel, message)
end
