-- Lets a lock of readers last as long as the longest of their holds, which had so many
-- milliseconds left. A server before 7.2 lets its clock go on within a script: if the hold has
-- less left once the lock has its time, it gets the same, and so the lock does not outlast it
-- (see outlived).
local function last_as(lock, longest, millis)
    redis.call('PEXPIRE', lock, millis)
    if redis.call('PTTL', longest) < millis then
        redis.call('PEXPIRE', longest, millis)
    end
end
