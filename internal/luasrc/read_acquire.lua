-- Acquires a read/write lock as a reader if it is free, if readers hold it, or if the owner holds it as
-- the writer.
--
-- It sets the TTL of the lock before that of the hold, because the server's clock may advance while the
-- script is running, and the lock must not outlive its longest hold (see outlived). For a lock that does
-- not expire, it sets the hold first, because the lock gets the TTL of its longest hold, including this one.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel, unused: it never exists, so the script does not run while its slot is moved
-- ARGV[1]   owner
-- ARGV[2]   lease, milliseconds
-- Replies:  nil if the owner holds the lock now. Otherwise, the remaining milliseconds of the writer, or -1
--           if it does not expire, in an array with the writer if the user may run HKEYS; the error
--           WRONGTYPE for a hash that is not a read/write lock
-- Effects:  if acquired, the owner's count rises by one, the key of the hold has the lease as its TTL, and
--           the lock's TTL is at least the lease; a lock that does not expire gets the TTL of the longest
--           hold of a reader, but not while it is write-locked
-- Uses:     last_for, refused, set_hold
local lock, owner, lease = KEYS[1], ARGV[1], ARGV[2]
local left, count = redis.call('PTTL', lock), 1
if left == -2 then
    redis.call('HSET', lock, 'mode', 'read', owner, count)
else
    local mode = redis.call('HGET', lock, 'mode')
    local writes = mode == 'write' and redis.call('HEXISTS', lock, owner .. ':write') == 1
    if mode ~= 'read' and not writes then
        return refused(lock, mode)
    end
    count = redis.call('HINCRBY', lock, owner, 1)
end
if left == -1 then
    set_hold(lock, owner, count, lease)
end
last_for(lock, left, tonumber(lease))
set_hold(lock, owner, count, lease)
return nil
