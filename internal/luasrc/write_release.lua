-- Lowers the writer's count to a target, or ends its holds. It is for owners that only one process uses.
-- Because of the target, it may run late or twice and does not need an unlock latch.
--
-- Its first write succeeds even if the server is out of memory.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel
-- ARGV[1]   owner, as a writer
-- ARGV[2]   lease of the remaining holds, milliseconds
-- ARGV[3]   target: the remaining count, 0 for none
-- ARGV[4]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[5]   message
-- Replies:  nil if the owner is not the writer; 1 if it no longer is; 0 if it still is
-- Effects:  with target 0, regardless of the count, the lock is left to the writer's own read holds with
--           the TTL of the longest if any is alive, and otherwise deleted; a count above a higher target
--           becomes the target, and the TTL becomes the lease or, if it is longer, that of the longest
--           read hold; otherwise nothing changes
-- Messages: if the owner is no longer the writer, the message on the channel
-- Uses:     end_write, longest_read
local lock, channel = KEYS[1], KEYS[2]
local owner, lease, target, publish, message = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local count = redis.call('HGET', lock, owner)
if not count or redis.call('HGET', lock, 'mode') ~= 'write' then
    return nil
end
if target == 0 then
    end_write(lock, channel, owner, publish, message)
    return 1
end
if tonumber(count) > target then
    redis.call('PEXPIRE', lock, math.max(lease, (longest_read(lock))))
    redis.call('HSET', lock, owner, target)
end
return 0
