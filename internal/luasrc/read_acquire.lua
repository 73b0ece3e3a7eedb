-- Takes a read/write lock as a reader: when it is free, when readers have it, or when the
-- owner has it as the writer.
--
-- The lock gets its time before the hold does, whose time is as long: while the server's clock
-- goes on, the lock must not seem to outlast the longest hold (see outlived). But a lock that
-- never expires gets the time of the longest hold, this one's included: what its key had before
-- is over.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel, unused: it is no key, and so a server whose slot moves
--           runs the script with all keys or not at all
-- ARGV[1]   owner
-- ARGV[2]   lease, milliseconds
-- Replies:  nil when the owner holds the lock now; else the milliseconds that the writer
--           has left, -1 when it never expires, in an array with the writer if the user
--           may ask (HKEYS); the error WRONGTYPE for a hash that is no read/write lock
-- Effects:  when acquired, the owner's count is one higher, the key of that hold lasts for
--           the lease, and the lock for as long at least; a lock that never expires lasts
--           as long as the longest of the readers' holds then, but stays as it is while it
--           is written
-- Messages: none
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
