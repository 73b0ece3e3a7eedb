-- Lets a lock of readers last as long as the longest of their holds, which had so many
-- milliseconds left. That hold gets its time once more, after the lock: a server before 7.2
-- lets its clock go on within a script, and the lock must not outlast the hold (see outlived).
local function last_as(lock, longest, millis)
    redis.call('PEXPIRE', lock, millis)
    redis.call('PEXPIRE', longest, millis)
end
