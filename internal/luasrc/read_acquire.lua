-- Acquires a read/write lock as a reader: if it is free, if readers hold it, or if the owner holds it
-- as the writer.
--
-- It sets the lock's TTL before the hold's, which is as long: as the server's clock may advance within
-- the script, the lock must not outlive its longest hold (see outlived). For a lock without expiry,
-- the hold is set first: the lock gets the TTL of its longest hold, including this hold.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel, unused: it never exists, so the script does not run while its slot moves
-- ARGV[1]   owner
-- ARGV[2]   lease, milliseconds
-- Replies:  nil if the owner holds the lock now; else the milliseconds that the writer has left, -1
--           without expiry, in an array with the writer if the user may run HKEYS; the error WRONGTYPE
--           for a hash that is not a read/write lock
-- Effects:  if acquired, the owner's count rises by one, the hold's key has the lease as TTL, and the
--           lock's TTL is at least that; a lock without expiry gets the TTL of the longest hold of a
--           reader, but not while it is write-locked
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
