-- Lowers the writer's count by one. It is for owners that several processes share. It saves its reply in a
-- latch, so that a retry gets the same reply and does not change anything.
--
-- Its first write succeeds even if the server is out of memory.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel
-- KEYS[3]   the latch of this release
-- ARGV[1]   owner, as a writer
-- ARGV[2]   lease of the remaining holds, milliseconds
-- ARGV[3]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[4]   message
-- ARGV[5]   the latch's time to live, milliseconds
-- Replies:  nil if the owner is not the writer; 1 if it no longer is; 2 if the lock was free; 0 if it is
--           still the writer; the latch's value if it exists
-- Effects:  none if the latch exists. Otherwise, the count falls by one, and the TTL is at least the lease
--           and that of the longest read hold of the writer. If it was the last count, the lock is left
--           to the read holds with the TTL of the longest if any is alive, and otherwise deleted. A reply
--           other than nil is saved in the latch
-- Messages: if the owner is no longer the writer, or the lock was free, the message on the channel
-- Uses:     end_write, lengthen, longest_read
local lock, channel, latch = KEYS[1], KEYS[2], KEYS[3]
local owner, lease, publish, message, ttl = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local before = redis.call('GET', latch)
if before then
    return tonumber(before)
end
local found = redis.call('HMGET', lock, 'mode', owner)
local mode, count = found[1], found[2]
if not mode and redis.call('EXISTS', lock) == 0 then
    redis.call('DEL', lock)
    redis.call(publish, channel, message)
    redis.call('SET', latch, 2, 'PX', ttl)
    return 2
end
if mode ~= 'write' or not count then
    return nil
end
local over = 0
if tonumber(count) > 1 then
    redis.call('HDEL', lock, '')
    redis.call('HINCRBY', lock, owner, -1)
    lengthen(lock, math.max(lease, (longest_read(lock))))
else
    end_write(lock, channel, owner, publish, message)
    over = 1
end
redis.call('SET', latch, over, 'PX', ttl)
return over
