-- Lowers a reader's count to a target, or ends its holds. It is for owners that only one process uses.
-- Because of the target, it may run late or twice and does not need an unlock latch.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel
-- ARGV[1]   owner
-- ARGV[2]   lease of the remaining holds, milliseconds
-- ARGV[3]   target: the remaining count, 0 for none
-- ARGV[4]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[5]   message
-- Replies:  nil if the owner is not a reader of the lock; 1 if it no longer is, or the lock was deleted;
--           0 if it still is
-- Effects:  target 0 removes the reader, regardless of the count; a count above a higher target becomes the
--           target, and the keys of the remaining holds get the lease. Then the lock is deleted if no
--           live reader holds it. Otherwise, the lock gets the TTL of the longest hold of a reader, but
--           while it is write-locked, its TTL does not fall. If there are more than four other readers,
--           the lock keeps its TTL if one of their holds has exactly this TTL. If there are more than
--           sixteen, it usually also keeps a TTL that is longer than that of the ended hold
-- Messages: if the lock was deleted, the message on the channel
-- Uses:     end_read, hold_count, hold_key, leave_read
local lock, channel = KEYS[1], KEYS[2]
local owner, lease, target, publish, message = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local found = redis.call('HMGET', lock, 'mode', owner)
local mode, text = found[1], found[2]
if not text or mode ~= 'read' and mode ~= 'write' then
    return nil
end
local count = hold_count(text)
if target > 0 then
    if count <= target then
        return 0
    end
    for k = target + 1, count do
        redis.call('DEL', hold_key(lock, owner, k))
    end
    redis.call('HSET', lock, owner, target)
    for k = 1, target do
        redis.call('PEXPIRE', hold_key(lock, owner, k), lease)
    end
    return end_read(lock, channel, mode, publish, message, 0, -3)
end
leave_read(lock, channel, mode, owner, count, publish, message)
return 1
