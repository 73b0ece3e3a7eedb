-- Sets the TTL of a lock of readers to that of the longest hold, which had these milliseconds left.
-- Before Redis 7.2 the server's clock advances within a script: if the hold has less left by now, it
-- gets the same TTL, so that the lock does not outlive it (see outlived).
local function last_as(lock, longest, millis)
    redis.call('PEXPIRE', lock, millis)
    if redis.call('PTTL', longest) < millis then
        redis.call('PEXPIRE', longest, millis)
    end
end
