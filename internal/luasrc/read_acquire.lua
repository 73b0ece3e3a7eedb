-- Takes a read/write lock as a reader: when it is free, when readers have it, or when the
-- owner has it as the writer.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
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
-- Uses:     hold_key, last_for, refused
local lock, owner, lease = KEYS[1], ARGV[1], ARGV[2]
local mode, free = redis.call('HGET', lock, 'mode'), false
if not mode and redis.call('EXISTS', lock) == 0 then
    free = true
    redis.call('HSET', lock, 'mode', 'read')
elseif mode == 'write' and redis.call('HEXISTS', lock, owner .. ':write') == 0 then
    return refused(lock, mode)
elseif mode ~= 'read' and mode ~= 'write' then
    return refused(lock, mode)
end
local key = hold_key(lock, owner, redis.call('HINCRBY', lock, owner, 1))
redis.call('SET', key, '1')
redis.call('PEXPIRE', key, lease)
if free then
    redis.call('PEXPIRE', lock, lease)
else
    last_for(lock, tonumber(lease))
end
return nil
