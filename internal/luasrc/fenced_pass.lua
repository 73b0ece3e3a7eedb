-- Pass with the next token for the heir.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the counter: the last token, a number
-- ARGV[1]   owner
-- ARGV[2]   heir: an owner that was never used
-- ARGV[3]   lease of the heir, milliseconds
-- ARGV[4]   least: the minimum value that the counter must have, or 0 for any
-- Replies:  the token if the heir holds the lock now; an array of 0 if the owner does not hold it
-- Effects:  those of Pass; if the owner holds the lock, the counter also rises by one
-- Uses:     next_token
local lock, counter, owner, heir, lease, least = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if redis.call('HEXISTS', lock, owner) == 0 then
    return {0}
end
local token = next_token(counter, least)
redis.call('HINCRBY', lock, heir, 1)
redis.call('DEL', lock)
redis.call('HINCRBY', lock, heir, 1)
redis.call('PEXPIRE', lock, lease)
return token
