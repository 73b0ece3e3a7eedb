-- Raises the TTL of a lock that a reader holds to at least millis. left is its current TTL. A lock that
-- does not expire gets the TTL of the longest hold of a reader, but not while it is write-locked, because
-- the writer's lease is not known.
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
