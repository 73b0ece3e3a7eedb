-- Writes a lock once more as it is, so that who waits for replicas behind this waits
-- until they have the lock.
--
-- HSET passes on to replicas also what changes nothing; PEXPIRE would have to name a
-- time to live, and one that the network delivers late would set an old one.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- ARGV[1]   owner
-- Replies:  nil when the owner does not hold the lock; else 1
-- Effects:  none, but that the server sends replicas the owner's count
-- Messages: none
local count = redis.call('HGET', KEYS[1], ARGV[1])
if not count then
    return nil
end
redis.call('HSET', KEYS[1], ARGV[1], count)
return 1
