-- Sets the TTL of a lock that readers hold to that of the longest hold, which was millis when it was read.
-- Before Redis 7.2, the server's clock advances while a script is running. If the TTL of the hold is
-- shorter by now, it is set again, so that the lock does not outlive the hold (see outlived).
local function last_as(lock, longest, millis)
    redis.call('PEXPIRE', lock, millis)
    if redis.call('PTTL', longest) < millis then
        redis.call('PEXPIRE', longest, millis)
    end
end
