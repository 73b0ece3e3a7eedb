-- Gives a lock to another owner of the same process, with the next token.
-- KEYS: lock, token. ARGV: owner, heir, lease in ms.
-- Reply: {token} when granted, else 0: the owner does not hold the lock.
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
    return 0
end
redis.call('HSET', KEYS[1], ARGV[2], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {redis.call('INCR', KEYS[2])}
