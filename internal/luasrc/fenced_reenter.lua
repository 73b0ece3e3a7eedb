-- Enters a lock again for an owner that holds it, with the next token. With a target
-- it may run more than once: each run gives a higher token.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the counter: the last token that was given, a number
-- ARGV[1]   owner
-- ARGV[2]   lease, milliseconds
-- ARGV[3]   target: the count to arrive at; 0: one more than there is
-- ARGV[4]   least: what the counter must have reached, 0 for anything
-- Replies:  nil when the owner does not hold the lock; the token when it does
-- Effects:  the counter is one higher; the count becomes the target if it was below
--           it, or is one higher, and the time to live the lease if less was left; a
--           lock that the owner does not hold is left as it is, free or not
-- Messages: none
-- Uses:     next_token, reenter
local lock, counter, owner, lease, target = KEYS[1], KEYS[2], ARGV[1], ARGV[2], tonumber(ARGV[3])
if redis.call('HEXISTS', lock, owner) == 0 then
    return nil
end
local token = next_token(counter, ARGV[4])
reenter(lock, owner, lease, target)
return token
