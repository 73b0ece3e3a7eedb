-- Lowers the writer's count by one. For owners that several processes may use: it leaves a
-- latch, so that the same release, sent again, gets the first answer and changes nothing.
--
-- Its first write is one that a server without memory does not refuse.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel
-- KEYS[3]   the latch of this release
-- ARGV[1]   owner, as a writer has it
-- ARGV[2]   lease for what remains, milliseconds
-- ARGV[3]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[4]   message
-- ARGV[5]   the latch's time to live, milliseconds
-- Replies:  nil when the owner is not the writer; 1 when it is not any more; 2 when the lock
--           was free; 0 when it is the writer still; the latch's value when it is there
-- Effects:  a latch that is there: none. Otherwise the count falls by one, and the lock
--           lasts for the lease at least, and as long as the longest of the writer's reads;
--           or, with the last count, the lock is left to the reads, for as long as the
--           longest of them, if one is alive, and else deleted; a reply other than nil
--           becomes the latch
-- Messages: the message on the channel, when the owner is not the writer any more, or the
--           lock was free
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
