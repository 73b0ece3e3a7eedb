-- Takes a free lock, or enters one again that the owner holds already, with the next
-- token.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the counter: the last token that was given, a number
-- ARGV[1]   owner
-- ARGV[2]   lease, milliseconds
-- ARGV[3]   least: what the counter must have reached, 0 for anything
-- Replies:  the token when the owner holds the lock now; else an array of the
--           milliseconds that the lock has left, -1 when it never expires, and the
--           holder's owner if the user may ask (HKEYS)
-- Effects:  when acquired, the counter and the owner's count are one higher, and the
--           lock's time to live is the lease, be that longer or shorter than before;
--           when the counter cannot be raised, an error, and nothing changes
-- Messages: none
-- Uses:     next_token
local lock, counter, owner, lease, least = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
if redis.call('EXISTS', lock) == 0 or redis.call('HEXISTS', lock, owner) == 1 then
    local token = next_token(counter, least)
    redis.call('HINCRBY', lock, owner, 1)
    redis.call('PEXPIRE', lock, lease)
    return token
end
return {redis.call('PTTL', lock), redis.pcall('HKEYS', lock)[1]}
