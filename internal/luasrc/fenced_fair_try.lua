-- FairTry with the next token.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of waiting owners, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline
-- KEYS[4]   the counter: the last token, a number
-- KEYS[5]   the lock's channel, unused: it never exists, so the script does not run while its slot is moved
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   wait of the owner, milliseconds
-- ARGV[4]   lease, milliseconds
-- ARGV[5]   least: the minimum value that the counter must have, or 0 for any
-- Replies:  the token if the owner holds the lock now. Otherwise, the reply of FairTry with details
-- Effects:  those of FairTry; if acquired, the counter also rises by one; if it cannot rise, the script
--           fails and nothing changes, except that overdue waiters are removed
-- Uses:     prune, take
local lock, queue, timeouts, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, owner, wait, lease, least = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local head = prune(queue, timeouts, now)
local token = take(lock, queue, timeouts, head, owner, wait, lease, counter, least)
if token then
    return token
end
return {redis.call('PTTL', lock), redis.pcall('HKEYS', lock)[1] or ''}
