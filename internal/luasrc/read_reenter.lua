-- Enters a lock as a reader for an owner that holds it, as a reader or as the writer. For
-- owners that one process alone uses it says where to arrive, and so may run more than once.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel, unused: it is no key, and so a server whose slot moves
--           runs the script with all keys or not at all
-- ARGV[1]   owner
-- ARGV[2]   lease, milliseconds
-- ARGV[3]   target: the count to arrive at; 0: one more than there is
-- Replies:  nil when the owner does not hold the lock; 1 when it does
-- Effects:  the count becomes the target if it was below it, or is one higher; all keys of
--           the owner's holds last as long as the longest of them, for the lease at least,
--           and so does the lock; a lock that the owner does not hold is left as it is
-- Messages: none
-- Uses:     hold_count, hold_key, lengthen, set_hold
local lock, owner, lease, target = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local found = redis.call('HMGET', lock, 'mode', owner)
local mode, count = found[1], hold_count(found[2])
local most = -3
for k = 1, count do
    most = math.max(most, redis.call('PTTL', hold_key(lock, owner, k)))
end
local writes = mode == 'write' and redis.call('HEXISTS', lock, owner .. ':write') == 1
if not writes and (mode ~= 'read' or most < -1) then
    return nil
end
if target == 0 then
    target = count + 1
end
if count < target then
    redis.call('HSET', lock, owner, target)
    count = target
end
most = math.max(most, lease)
lengthen(lock, most)
for k = 1, count do
    set_hold(lock, owner, k, most)
end
return 1
