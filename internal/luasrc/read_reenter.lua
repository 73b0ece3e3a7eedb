-- Reenters a lock as a reader for an owner that holds it in either mode. With a target, it may run
-- twice.
--
-- KEYS[1]   the lock: a hash of mode, and of owner -> count
-- KEYS[2]   the lock's channel, unused: it never exists, so the script does not run while its slot is moved
-- ARGV[1]   owner
-- ARGV[2]   lease, milliseconds
-- ARGV[3]   target: the minimum count afterwards, or 0 to raise it by one
-- Replies:  1, or nil if the owner does not hold the lock
-- Effects:  the count rises to the target, or by one; the keys of all holds of the owner get the TTL of the
--           longest of them, but at least the lease, and the lock's TTL is at least as long; if the owner
--           does not hold the lock, nothing changes
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
