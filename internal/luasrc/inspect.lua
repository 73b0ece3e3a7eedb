-- Reads the holder of a lock, its count and the lock's TTL at the same time.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- Replies:  an array of the remaining milliseconds, -1 if the lock does not expire, -2 if it is free;
--           and an array of owner, count, owner ...
return {redis.call('PTTL', KEYS[1]), redis.call('HGETALL', KEYS[1])}
