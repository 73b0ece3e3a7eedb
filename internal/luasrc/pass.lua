-- Passes a lock on from the owner that holds it to an heir, in one step: nobody
-- finds it free in between, so nobody is told. For owners that one process alone
-- uses. The heir is written first: a server without memory refuses that, while
-- nothing else has been done.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- ARGV[1]   owner
-- ARGV[2]   heir: an owner that nobody has had
-- ARGV[3]   lease of the heir, milliseconds
-- Replies:  nil when the heir holds the lock now; 0 when the owner does not hold it
-- Effects:  the heir, and nobody else, holds the lock, once, whatever the owner's
--           count was, with the lease as time to live; a lock that the owner does
--           not hold is left as it is, free or not
-- Messages: none
local lock, owner, heir, lease = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
if redis.call('HEXISTS', lock, owner) == 0 then
    return 0
end
redis.call('HINCRBY', lock, heir, 1)
redis.call('DEL', lock)
redis.call('HINCRBY', lock, heir, 1)
redis.call('PEXPIRE', lock, lease)
return nil
