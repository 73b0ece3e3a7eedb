-- Takes a free lock, or enters one again that the owner holds already.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- ARGV[1]   owner
-- ARGV[2]   lease, milliseconds
-- ARGV[3]   given: a refusal says who holds the lock, too; left out: it does not
-- Replies:  nil when the owner holds the lock now; else the milliseconds that
--           the lock has left, -1 when it never expires, in an array with the
--           holder's owner where that is asked for and the user may ask (HKEYS)
-- Effects:  when acquired, the owner's count is one higher and the lock's time
--           to live is the lease, be that longer or shorter than before
-- Messages: none
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
