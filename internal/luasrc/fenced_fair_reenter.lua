-- FairReenter with the next token. With a target, it may run twice. Each run returns a higher token.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of waiting owners, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline
-- KEYS[4]   the counter: the last token, a number
-- KEYS[5]   the lock's channel, unused: it never exists, so the script does not run while its slot is moved
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   lease, milliseconds
-- ARGV[4]   target: the minimum count afterwards, or 0 to raise it by one
-- ARGV[5]   least: the minimum value that the counter must have, or 0 for any
-- Replies:  the token, or nil if the owner does not hold the lock
-- Effects:  those of FairReenter; if the owner holds the lock, the counter also rises by one
-- Uses:     next_token, prune, reenter
local lock, queue, timeouts, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, owner, lease, target, least = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
prune(queue, timeouts, now)
if redis.call('HEXISTS', lock, owner) == 0 then
    return nil
end
local token = next_token(counter, least)
reenter(lock, owner, lease, target)
return token
