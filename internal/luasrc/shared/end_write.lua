-- Ends the writer's last hold and sends the message. If a read hold is still alive, the lock becomes
-- read-locked with the TTL of the longest read hold. Otherwise, it is deleted.
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
