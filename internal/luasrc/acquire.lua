-- Acquires a lock if it is free, or reenters it if the owner holds it.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- ARGV[1]   owner
-- ARGV[2]   lease, milliseconds
-- ARGV[3]   given: optional; if it is given, the reply names the holder
-- Replies:  nil if the owner holds the lock now. Otherwise, the remaining milliseconds, or -1 if the lock
--           does not expire; with ARGV[3], an array of this number and, if the user may run HKEYS, the
--           holder's owner
-- Effects:  if acquired, the owner's count rises by one, and the lock's TTL becomes the lease
local lock, owner, lease, tell = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
if redis.call('EXISTS', lock) == 0 or redis.call('HEXISTS', lock, owner) == 1 then
    redis.call('HINCRBY', lock, owner, 1)
    redis.call('PEXPIRE', lock, lease)
    return nil
end
local left = redis.call('PTTL', lock)
if tell then
    return {left, redis.pcall('HKEYS', lock)[1]}
end
return left
