-- Rewrites a lock unchanged, so that a WAIT after it waits until replicas have the lock.
--
-- HSET is replicated even if it does not change anything. PEXPIRE would need a TTL, and a delayed call
-- would set an old one.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- ARGV[1]   owner
-- Replies:  1, or nil if the owner does not hold the lock
-- Effects:  none, but the server sends the owner's count to replicas
local count = redis.call('HGET', KEYS[1], ARGV[1])
if not count then
    return nil
end
redis.call('HSET', KEYS[1], ARGV[1], count)
return 1
