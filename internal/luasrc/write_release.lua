-- Lowers the writer's count to a target, or ends its holds. For owners that one process
-- alone uses: since it says where to arrive, it may run late or more than once, and so
-- needs no unlock latch.
--
-- Its first write is one that a server without memory does not refuse.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel
-- ARGV[1]   owner, as a writer has it
-- ARGV[2]   lease for what remains, milliseconds
-- ARGV[3]   target: the count that shall remain, 0 for none
-- ARGV[4]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[5]   message
-- Replies:  nil when the owner is not the writer; 1 when it is not any more; 0 when it is
--           still
-- Effects:  target 0 leaves the lock to the writer's own reads, for as long as the longest of
--           them, if one is alive, and else deletes it, whatever the count; a higher target becomes the count if the count
--           was above it, and the lock lasts for the lease then, or as long as the longest
--           of the reads; otherwise nothing changes
-- Messages: the message on the channel, when the owner is not the writer any more
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
