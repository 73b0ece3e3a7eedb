-- Acquires a read/write lock as the writer if it is free, or reenters it if the owner is the writer.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- ARGV[1]   owner, as a writer
-- ARGV[2]   lease, milliseconds
-- Replies:  nil if the owner holds the lock now. Otherwise, the remaining milliseconds, or -1 if the lock
--           does not expire, in an array with the writer if there is one and the user may run HKEYS; the
--           error WRONGTYPE for a hash that is not a read/write lock
-- Effects:  if acquired, the owner's count rises by one, and the lock's TTL rises to the lease
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
