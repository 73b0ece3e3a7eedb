-- Reads who holds a lock, how often, and for how long, at one moment.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- Replies:  an array of the milliseconds that the lock has left, -1 when it never
--           expires, -2 when it is free; and an array of owner, count, owner ...
-- Effects:  none
-- Messages: none
return {redis.call('PTTL', KEYS[1]), redis.call('HGETALL', KEYS[1])}
