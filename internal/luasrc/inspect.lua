-- Reads the holders of a lock, their counts and its TTL at one moment.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- Replies:  an array of the milliseconds left, -1 without expiry, -2 if free; and an array of owner,
--           count, owner ...
return {redis.call('PTTL', KEYS[1]), redis.call('HGETALL', KEYS[1])}
