-- Takes a read/write lock as the writer when it is free, or enters it again as the writer
-- that holds it.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- ARGV[1]   owner, as a writer has it
-- ARGV[2]   lease, milliseconds
-- Replies:  nil when the owner holds the lock now; else the milliseconds that the lock has
--           left, -1 when it never expires, in an array with the writer if there is one and
--           the user may ask (HKEYS); the error WRONGTYPE for a hash that is no read/write
--           lock
-- Effects:  when acquired, the owner's count is one higher, and the lock lasts for the lease
--           at least
-- Messages: none
-- Uses:     lengthen, refused
local lock, owner, lease = KEYS[1], ARGV[1], ARGV[2]
local mode = redis.call('HGET', lock, 'mode')
if not mode and redis.call('EXISTS', lock) == 0 then
    redis.call('HSET', lock, 'mode', 'write')
    redis.call('HSET', lock, owner, 1)
    redis.call('PEXPIRE', lock, lease)
    return nil
end
if mode == 'write' and redis.call('HEXISTS', lock, owner) == 1 then
    redis.call('HINCRBY', lock, owner, 1)
    lengthen(lock, tonumber(lease))
    return nil
end
return refused(lock, mode)
