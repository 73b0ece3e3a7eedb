-- Passes a lock on from the owner that holds it to an heir, as the script without a
-- token does, with the next token for the heir.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the counter: the last token that was given, a number
-- ARGV[1]   owner
-- ARGV[2]   heir: an owner that nobody has had
-- ARGV[3]   lease of the heir, milliseconds
-- ARGV[4]   least: what the counter must have reached, 0 for anything
-- Replies:  the token when the heir holds the lock now; an array of 0 when the owner
--           does not hold it
-- Effects:  the counter is one higher, and the heir, and nobody else, holds the lock,
--           once, whatever the owner's count was, with the lease as time to live; a
--           lock that the owner does not hold is left as it is, free or not
-- Messages: none
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
