-- Lowers a reader's count to a target, or ends its holds. For owners that one process alone
-- uses: since it says where to arrive, it may run late or more than once, and so needs no
-- unlock latch.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel
-- ARGV[1]   owner
-- ARGV[2]   lease for the holds that remain, milliseconds
-- ARGV[3]   target: the count that shall remain, 0 for none
-- ARGV[4]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[5]   message
-- Replies:  nil when the owner is no reader of the lock; 1 when it is none any more, or
--           the lock was deleted; 0 when it is one still
-- Effects:  target 0 removes the owner as a reader, whatever the count; a higher target
--           becomes the count, with the lease for the keys of the holds that remain, if the
--           count was above it; then the lock is deleted if no reader that is alive has it,
--           and else lasts as long as the longest of the readers' holds, but for a writer
--           never less than before; for more than four other readers as long as it did if
--           one of them has just as much left, and for more than sixteen mostly also if it had more
--           left than the holds that ended; otherwise nothing changes
-- Messages: the message on the channel, when the lock was deleted
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
