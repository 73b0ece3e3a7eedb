-- Reenter with the next token. With a target, it may run twice. Each run returns a higher token.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the counter: the last token, a number
-- ARGV[1]   owner
-- ARGV[2]   lease, milliseconds
-- ARGV[3]   target: the minimum count afterwards, or 0 to raise it by one
-- ARGV[4]   least: the minimum value that the counter must have, or 0 for any
-- Replies:  the token, or nil if the owner does not hold the lock
-- Effects:  those of Reenter; if the owner holds the lock, the counter also rises by one
-- Uses:     next_token, reenter
local lock, counter, owner, lease, target = KEYS[1], KEYS[2], ARGV[1], ARGV[2], tonumber(ARGV[3])
if redis.call('HEXISTS', lock, owner) == 0 then
    return nil
end
local token = next_token(counter, ARGV[4])
reenter(lock, owner, lease, target)
return token
