-- Takes a free lock, or enters one again that the owner holds already.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- ARGV[1]   lease, milliseconds
-- ARGV[2]   owner
-- Replies:  nil when the owner holds the lock now; else the milliseconds that
--           the lock has left, -1 when it never expires
-- Effects:  when acquired, the owner's count is one higher and the lock's time
--           to live is the lease, be that longer or shorter than before
-- Messages: none
local lock, owner = KEYS[1], ARGV[2]
if redis.call('EXISTS', lock) == 0 or redis.call('HEXISTS', lock, owner) == 1 then
    redis.call('HINCRBY', lock, owner, 1)
    redis.call('PEXPIRE', lock, ARGV[1])
    return nil
end
return redis.call('PTTL', lock)
