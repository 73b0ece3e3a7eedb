-- Lowers a reader's count by one. For owners that several processes may use: it leaves a
-- latch, so that the same release, sent again, gets the first answer and changes nothing.
--
-- Its first write is one that a server without memory does not refuse.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel
-- KEYS[3]   the latch of this release
-- ARGV[1]   owner
-- ARGV[2]   lease for the owner's holds that remain, milliseconds
-- ARGV[3]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[4]   message
-- ARGV[5]   the latch's time to live, milliseconds
-- Replies:  nil when the owner is no reader of the lock; 1 when the lock is free now; 2 when
--           it was free; 0 when readers or a writer have it still; the latch's value when it
--           is there
-- Effects:  a latch that is there: none. Otherwise the count falls by one, the key of the
--           last hold is deleted, and the others last as long as the longest of all did, it
--           included, and for the lease at least, if one of them was alive; then the lock
--           is deleted if no reader that is alive has it, and else lasts as long as the
--           longest of the readers' holds, but for a writer never less than before; when the
--           owner has gone, for more than four other readers as long as it did if one of
--           them has just as much left, and for more than sixteen mostly also if it had more left
--           than the hold that ended; a reply other than nil becomes the latch
-- Messages: the message on the channel, when the lock was deleted or was free
-- Uses:     end_read, hold_count, hold_key, leave_read, set_hold
local lock, channel, latch = KEYS[1], KEYS[2], KEYS[3]
local owner, lease, publish, message, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local before = redis.call('GET', latch)
if before then
    return tonumber(before)
end
local found = redis.call('HMGET', lock, 'mode', owner)
local mode, text = found[1], found[2]
if not mode and redis.call('EXISTS', lock) == 0 then
    redis.call('DEL', lock)
    redis.call(publish, channel, message)
    redis.call('SET', latch, 2, 'PX', ttl)
    return 2
end
if not text or mode ~= 'read' and mode ~= 'write' then
    return nil
end
local count, free = hold_count(text), 0
if count > 1 then
    local last = hold_key(lock, owner, count)
    local most = redis.call('PTTL', last)
    redis.call('DEL', last)
    redis.call('HINCRBY', lock, owner, -1)
    for k = 1, count - 1 do
        most = math.max(most, redis.call('PTTL', hold_key(lock, owner, k)))
    end
    most = most > -2 and math.max(most, tonumber(lease)) or -2
    for k = 1, count - 1 do
        local left = redis.call('PTTL', hold_key(lock, owner, k))
        if left ~= -1 and left < most then
            set_hold(lock, owner, k, most)
        end
    end
    free = end_read(lock, channel, mode, publish, message, 0, most)
else
    free = leave_read(lock, channel, mode, owner, count, publish, message)
end
redis.call('SET', latch, free, 'PX', ttl)
return free
