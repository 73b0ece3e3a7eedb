-- Acquires a lock if it is free, or reenters it if the owner holds it, with the next token.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the counter: the last token, a number
-- ARGV[1]   owner
-- ARGV[2]   lease, milliseconds
-- ARGV[3]   least: the minimum value that the counter must have, or 0 for any
-- Replies:  the token if the owner holds the lock now. Otherwise, an array of the remaining milliseconds,
--           or -1 if the lock does not expire, and the holder's owner if the user may run HKEYS
-- Effects:  if acquired, the counter and the owner's count rise by one, and the lock's TTL becomes the
--           lease; if the counter cannot rise, the script fails and nothing changes
-- Uses:     next_token
local lock, counter, owner, lease, least = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
if redis.call('EXISTS', lock) == 0 or redis.call('HEXISTS', lock, owner) == 1 then
    local token = next_token(counter, least)
    redis.call('HINCRBY', lock, owner, 1)
    redis.call('PEXPIRE', lock, lease)
    return token
end
return {redis.call('PTTL', lock), redis.pcall('HKEYS', lock)[1]}
