-- Lowers a reader's count by one. It is for owners that several processes share. It saves its reply in a
-- latch, so that a retry gets the same reply and does not change anything.
--
-- Its first write succeeds even if the server is out of memory.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel
-- KEYS[3]   the latch of this release
-- ARGV[1]   owner
-- ARGV[2]   lease of the owner's remaining holds, milliseconds
-- ARGV[3]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[4]   message
-- ARGV[5]   the latch's time to live, milliseconds
-- Replies:  nil if the owner is not a reader of the lock; 1 if the lock is free now; 2 if it was already free; 0
--           if readers or a writer still hold it; the latch's value if it exists
-- Effects:  none if the latch exists. Otherwise, the count falls by one, the key of the last hold is
--           deleted and, if any of the holds was alive, the others get the TTL of the longest of all
--           holds, but at least the lease. The lock is then deleted, or its TTL set, as in ReadRelease.
--           A reply other than nil is saved in the latch
-- Messages: if the lock is free, the message on the channel
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
