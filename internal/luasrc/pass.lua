-- Passes a lock from its owner to an heir in one step. Since the lock is never free in between, it does not
-- send a message. It is for owners that only one process uses. It writes the heir first, because a server
-- that is out of memory rejects this write before anything has changed.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- ARGV[1]   owner
-- ARGV[2]   heir: an owner that was never used
-- ARGV[3]   lease of the heir, milliseconds
-- Replies:  nil if the heir holds the lock now; 0 if the owner does not hold it
-- Effects:  if the owner holds the lock, the heir alone holds it, once, regardless of the owner's count,
--           and the TTL is the lease
local lock, owner, heir, lease = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
if redis.call('HEXISTS', lock, owner) == 0 then
    return 0
end
redis.call('HINCRBY', lock, heir, 1)
redis.call('DEL', lock)
redis.call('HINCRBY', lock, heir, 1)
redis.call('PEXPIRE', lock, lease)
return nil
