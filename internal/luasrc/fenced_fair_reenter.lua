-- FairReenter with the next token. With a target it may run twice: each run returns a higher token.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of waiting owners, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline
-- KEYS[4]   the counter: the last token, a number
-- KEYS[5]   the lock's channel, unused: it never exists, so the script does not run while its slot moves
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   lease, milliseconds
-- ARGV[4]   target: the least count afterwards; 0: one more
-- ARGV[5]   least: the least value that the counter must have, 0 for any
-- Replies:  the token, or nil if the owner does not hold the lock
-- Effects:  as for FairReenter, and if the owner holds the lock, the counter rises by one
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
