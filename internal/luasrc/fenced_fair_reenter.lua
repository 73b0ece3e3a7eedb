-- Enters a fair lock again for an owner that holds it, with the next token. With a target
-- it may run more than once: each run gives a higher token.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of the owners that wait, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline, the time
--           from which it counts as dead
-- KEYS[4]   the counter: the last token that was given, a number
-- KEYS[5]   the lock's channel, unused: it is no key, and so a server whose slot moves
--           runs the script with all keys or not at all
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   lease, milliseconds
-- ARGV[4]   target: the count to arrive at; 0: one more than there is
-- ARGV[5]   least: what the counter must have reached, 0 for anything
-- Replies:  nil when the owner does not hold the lock; the token when it does
-- Effects:  those of the script without a token, and when the owner holds the lock, the
--           counter is one higher
-- Messages: none
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
